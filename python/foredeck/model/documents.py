"""Documents: an immutable envelope and a mutable payload.

Objects are what the model can refer to; records are bookkeeping.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from types import UnionType
from typing import Any, ClassVar, Literal, Self, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field

from foredeck.model.identity import hash_text, hash_value
from foredeck.model.sources import PointerSource, Source

SUMMARIES = ("short_summary", "long_summary")
"""Texts beside the content, each with a hash of its own."""


def summary_hash_name(summary: str) -> str:
    return f"{summary}_hash"


def damaged_summary(fields: Mapping[str, Any]) -> str | None:
    for name in SUMMARIES:
        text, digest = fields.get(name), fields.get(summary_hash_name(name))
        if digest is not None and (not isinstance(text, str) or hash_text(text) != digest):
            return name
    return None


Fields = Mapping[str, Any]
"""A document's fields by name, as stores return them."""

Generator = Literal["human", "agent", "tool", "system"]


class Provenance(BaseModel):
    """Origin of a version: `origin` in words or an id, its generator and parents.

    `tool_call` is no field, so that versions without it keep their hashes.
    """

    model_config = ConfigDict(extra="allow", defer_build=True)

    origin: str
    generator: Generator
    parent_refs: list[str] = Field(default_factory=list)


ENVELOPE = frozenset({"id", "type", "source", "identity_hash"})
HASHES = frozenset({"source_hash", "content_hash", "text_hash", "metadata_view_hash"})
_NO_PAYLOAD = ENVELOPE | HASHES
_SEALED = "_sealed_fields"
"""Attribute with the hashed fields, neither dumped nor compared."""


class Document(BaseModel):
    """Make and fill a document, `seal()` it, then store it.

    `content` is the text to activate, or None. Unknown fields are kept.
    """

    model_config = ConfigDict(extra="allow", validate_assignment=False, defer_build=True)

    metadata_fields: ClassVar[tuple[str, ...]] = ()

    id: str
    type: str
    source: Source | None = None
    identity_hash: str = ""

    content: str | None = None
    source_hash: str | None = None
    content_hash: str = ""
    text_hash: str | None = None
    metadata_view_hash: str = ""
    provenance: Provenance
    locked: bool = False
    nickname: str | None = None
    view: list[str] | None = None

    def seal(self) -> Self:
        """Computes the hashes; returns the document.

        `identity_hash` covers type and source, `text_hash` the content, `content_hash` every
        payload field but these hashes.
        """
        more = self.model_extra or {}
        for name in SUMMARIES:
            if isinstance(text := more.get(name), str):
                more[summary_hash_name(name)] = hash_text(text)
            else:
                more.pop(summary_hash_name(name), None)
        body = self.model_dump(exclude_none=False)
        hashes = {
            "identity_hash": identity_hash(self.type, body["source"]),
            "text_hash": None if self.content is None else hash_text(self.content),
            "metadata_view_hash": hash_value(self.metadata_view(body)),
            "content_hash": content_hash(body),
        }
        vars(self).update({**hashes, _SEALED: {**body, **hashes}})
        return self

    def sealed_fields(self) -> Mapping[str, Any] | None:
        """The fields as hashed, content included; None if changed since, or never sealed here."""
        body: Mapping[str, Any] | None = vars(self).get(_SEALED)
        return body if body == self.model_dump() else None

    def metadata_view(self, body: Mapping[str, Any] | None = None) -> list[list[Any]]:
        fields = body if body is not None else self.model_dump()
        names = [*(self.view if self.view is not None else self.metadata_fields)]
        if "state" not in names and self.type == "file" and fields.get("state") != "text":
            names.append("state")
        view = [[name, fields.get(name)] for name in ("id", "type", *names)]
        if source := fields.get("source"):
            return [[n, source.get("path") if n == "path" else value] for n, value in view]
        return view


def identity_hash(type_: str, source: Mapping[str, Any] | Source | None) -> str:
    if source is None:
        return _unsourced_identity(type_)
    binding = source.model_dump() if isinstance(source, BaseModel) else source
    return hash_value({"type": type_, "source": binding})


@lru_cache(maxsize=64)
def _unsourced_identity(type_: str) -> str:
    """One per type, cached: every document needs it."""
    return hash_value({"type": type_, "source": None})


def content_hash(body: Mapping[str, Any]) -> str:
    """SHA-256 of all fields without envelope and hashes; None and missing content are equal."""
    return hash_value({k: v for k, v in body.items() if v is not None and k not in _NO_PAYLOAD})


class FileDocument(Document):
    """A file. `content` is None if deleted, not text, or too large."""

    metadata_fields = ("path", "file_type", "char_count", "nickname")

    type: str = "file"
    file_type: str = ""
    char_count: int = 0
    state: Literal["text", "binary", "huge", "listed", "deleted", "unreadable", "special"] = "text"
    """Why `content` is as it is; `listed`: named by a listing, never read."""
    revision: str | None = None
    """Identifies the state of a binary or huge file."""
    moved_to: str | None = None
    volume: str | None = None
    """The file system of its folder, and the place there."""


class ToolcallDocument(Document):
    """A tool call's result: `content` is its text, `args` the model's arguments."""

    metadata_fields = ("tool", "args_display", "status")

    type: str = "toolcall"
    tool: str
    args: dict[str, Any] = Field(default_factory=dict)
    args_display: str = ""
    status: Literal["ok", "fail"] = "ok"
    took_ms: int | None = None
    """How long the tool ran, where its host says so."""
    chat_ref: str = ""
    turn_ref: str | None = None
    """Id of the turn that made the call."""
    position: int | None = None
    """Position among the turn's or the parent's calls, from 0."""
    parent_ref: str | None = None
    """Id of the outer tool call, such as a code mode script."""
    file_refs: list[str] = Field(default_factory=list)
    file_version_ref: dict[str, Any] | None = None
    """For `read`: the file's version, and the requested lines."""
    provider_call_id: str = ""
    """Differs from `id` if an earlier call has it."""
    details: Any = None
    images: list[str] = Field(default_factory=list)
    """Blob hashes of the result's images."""
    full_output: str | None = None


class ChatDocument(Document):
    """The locked head of a session's chat; turns are documents of their own."""

    metadata_fields = ("session_ref", "turn_count")

    type: str = "chat"
    locked: bool = True
    session_ref: str
    """Id of the session's object; older documents have the session's own id."""
    turn_count: int = 0


class SystemPromptDocument(Document):
    """What the host sends before the chat, locked: system prompt (`content`) and tools."""

    metadata_fields = ("session_ref",)

    type: str = "system_prompt"
    locked: bool = True
    session_ref: str = ""
    """As in `ChatDocument`."""
    messages: list[Any] = Field(default_factory=list)
    """The host's system messages as given."""
    tools: list[Any] = Field(default_factory=list)
    """Definitions of the active tools as given."""


class SessionDocument(Document):
    """A session's identity and settings; its index is in `member` documents, so that nothing grows
    here."""

    metadata_fields = ("harness", "session_id")

    type: str = "session"
    harness: str = "pi"
    session_id: str
    chat_ref: str
    system_prompt_ref: str
    cwd: str = ""
    host_file: str | None = None
    parent_session: str | None = None
    """The session that this one was forked from."""
    started_by: str | None = None
    """The session whose agent started this one."""
    untold: dict[str, str] | None = None
    """Pending notices by handle."""
    behind: dict[str, str] | None = None
    """By handle, the hash of the text that the agent knows of a file changed from outside."""
    begun_by: str | None = None
    """Proof that the session began at this user's side (`memory/trust.py`)."""
    private: bool | None = None
    observing_mode: str | None = None
    """The observing mode that its user chose, or `guess`."""

    @staticmethod
    def is_private(fields: Fields) -> bool:
        """Whether a stored session is private; `fields` as in a `Head`."""
        return fields.get("private") is True


def chat_id(session: str) -> str:
    return f"chat:{session}"


def session_object_id(session: str) -> str:
    return f"session:{session}"


def session_of(session_ref: str) -> str:
    """The session of a `session_ref`, in its newer or older form."""
    return session_ref.removeprefix("session:")


def system_prompt_id(session: str) -> str:
    return f"system_prompt:{session}"


def by_a_name() -> Provenance:
    """Provenance of pointers: a name."""
    return Provenance(origin="pointer", generator="system")


class PointerDocument(Document):
    """A thing known without being fetched; `locator` is where it is."""

    metadata_fields = ("locator", "file_type")

    type: str = "pointer"
    provenance: Provenance = Field(default_factory=by_a_name)
    locator: str = ""
    file_type: str = ""

    @classmethod
    def of(cls, source: PointerSource, locator: str, file_type: str) -> PointerDocument:
        """The sealed object of a source."""
        id = identity_hash("pointer", source)
        return cls(id=id, source=source, locator=locator, file_type=file_type).seal()


FIRST_LINE_CHARS = 80

PASTE_CHARS = 8000
"""Length from which a user's text is an object, and folds."""


def by_the_user() -> Provenance:
    """Provenance of a user's text."""
    return Provenance(origin="user-input", generator="human")


class UserDocument(Document):
    """A user's text; equal texts are one object."""

    metadata_fields = ("char_count", "line_count", "first_line")

    type: str = "user"
    provenance: Provenance = Field(default_factory=by_the_user)
    char_count: int = 0
    line_count: int = 0
    first_line: str = ""
    """The first non-blank line, shortened."""

    @classmethod
    def of(cls, text: str) -> UserDocument:
        """The sealed object of a text."""
        lines = text.rstrip("\n").count("\n") + 1
        first = text.lstrip()[: FIRST_LINE_CHARS + 1].partition("\n")[0].rstrip()
        if len(first) > FIRST_LINE_CHARS:
            first = first[: FIRST_LINE_CHARS - 1] + "…"
        return cls(
            id=user_object_id(hash_text(text)),
            content=text,
            char_count=len(text),
            line_count=lines,
            first_line=first,
        ).seal()


def user_object_id(text_hash: str) -> str:
    """Id by the text's hash."""
    return f"user:{text_hash[:32]}"


# A listing reads a field or two of thousands of versions, so a view validates nothing and makes no
# document: what was stored was validated then.

M = TypeVar("M", bound=BaseModel)


def view_of(kind: type[M], fields: Mapping[str, Any]) -> M:
    """A version's fields as attributes. Raises `KeyError` for `content`, which `get` loads."""
    return cast(M, _class_of(kind)(fields))


class _View:
    __slots__ = ("_fields",)

    _kind: ClassVar[type[BaseModel]]

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        # Once for each field of a class: from then on it is found as a property.
        setattr(type(self), name, _property(self._kind, name))
        return getattr(self, name)


@cache
def _class_of(kind: type[BaseModel]) -> type[_View]:
    return type("_View", (_View,), {"__slots__": (), "_kind": kind})


def _property(kind: type[BaseModel], name: str) -> property:
    info = kind.model_fields.get(name)
    part = None if info is None else _part(info.annotation)
    default: Any = None  # called where the field is absent
    if info is not None and not info.is_required() and name != "content":
        default = info.default_factory or (lambda: info.default)

    def read(view: _View) -> Any:
        try:
            value = view._fields[name]
        except KeyError:
            if default is None:
                raise
            return default()
        return view_of(part, value) if part is not None and isinstance(value, dict) else value

    return property(read)


def _part(annotation: Any) -> type[BaseModel] | None:
    is_union = get_origin(annotation) in (Union, UnionType)
    for each in get_args(annotation) if is_union else (annotation,):
        if isinstance(each, type) and issubclass(each, BaseModel):
            return each
    return None


class HistorySessionDocument(SessionDocument):
    # In the session's own document, which the same transaction stores: a reading that was killed
    # goes on where it ended, one that is repeated finds nothing new, and what is exported or
    # forgotten takes this along.

    ingested: dict[str, Any] = Field(default_factory=dict)
    """The fields of `HistoryProgress`."""


@dataclass(slots=True)
class HistoryProgress:
    """How far a session was read, and where that is in its file."""

    file: str
    exchanges: int = 0
    """Exchanges stored so far, each a turn."""
    line: int = 0
    check: int = 0
    """The last line of them, and the CRC-32 of the file up to its end."""
    messages: int = 0
    tool_calls: int = 0
    first_ms: int = 0
    last_ms: int = 0
    complete: list[int] = field(default_factory=list)
    """Size and modification time in nanoseconds of the file when it was read to its end; else
    empty."""

    def as_fields(self) -> dict[str, Any]:
        """As the session's document keeps it."""
        return asdict(self)


def progress_in(fields: Fields) -> HistoryProgress | None:
    """How far a session was read; None for one that foredeck recorded."""
    stored = fields.get("ingested")
    return HistoryProgress(**stored) if isinstance(stored, dict) and stored else None
