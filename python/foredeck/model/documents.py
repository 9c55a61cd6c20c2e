"""The documents that the store keeps: an immutable envelope and a mutable payload.

Objects (`file`, `toolcall`, `user`, `pointer`, `chat`, `system_prompt`, `session`, and `compaction`
in `observations.py`) are what the model can refer to. Records (`call` in `calls.py`, all others in
`records.py`) are the bookkeeping around them, versioned by the same store with the same hashes.

Each class prepares its validation with its first document (`defer_build`): a process starts without
the 2 ms that each of some thirty takes, most of which it never makes a document of.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from types import UnionType
from typing import Any, ClassVar, Literal, Self, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field

from foredeck.model.canonical import hash_text, hash_value
from foredeck.model.sources import PointerSource, Source

SUMMARIES = ("short_summary", "long_summary")
"""Texts beside the content, each with a hash of its own: one line that says what it is, and a
longer one. A document has them only where some were given; one without their hashes is not checked.
"""


def summary_hash_name(summary: str) -> str:
    """The field with a summary's hash."""
    return f"{summary}_hash"


def seal_summaries(fields: dict[str, Any]) -> None:
    """Give each summary among these fields its hash, and drop that of one which is gone."""
    for name in SUMMARIES:
        text = fields.get(name)
        if isinstance(text, str):
            fields[summary_hash_name(name)] = hash_text(text)
        else:
            fields.pop(summary_hash_name(name), None)


def damaged_summary(fields: Mapping[str, Any]) -> str | None:
    """The first summary that does not fit its hash; None where all do."""
    for name in SUMMARIES:
        text, digest = fields.get(name), fields.get(summary_hash_name(name))
        if digest is not None and (not isinstance(text, str) or hash_text(text) != digest):
            return name
    return None


Fields = Mapping[str, Any]
"""The fields of a document as a store hands them out, by name."""

Generator = Literal["human", "agent", "tool", "system"]


class Provenance(BaseModel):
    """Where a version came from: `origin` in words or an id, who made it, what it derives from.

    A file's version that a tool call made also has `tool_call`, the id of that call's object. It is
    no field, because a version without it must keep its hashes.
    """

    model_config = ConfigDict(extra="allow", defer_build=True)

    origin: str
    generator: Generator
    parent_refs: list[str] = Field(default_factory=list)


ENVELOPE = frozenset({"id", "type", "source", "identity_hash"})
HASHES = frozenset({"source_hash", "content_hash", "text_hash", "metadata_view_hash"})
_NO_PAYLOAD = ENVELOPE | HASHES
_SEALED = "_sealed_fields"
"""Under this name a document keeps the fields that were hashed. It is no field itself, so it is
neither dumped nor compared."""


class Document(BaseModel):
    """Base of every document. Make one, fill it, then `seal()` it before it is stored.

    `content` is the text that activation loads, or None (deleted, not text, or none by nature).
    Fields that a type does not know are kept as given.
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
        """Compute the hashes from the current fields. Returns the document itself.

        `identity_hash` covers type and source, `text_hash` the content alone,
        `metadata_view_hash` the metadata view, `content_hash` every payload field but these hashes.
        A summary has a hash of its own, which is a payload field like the summary.
        """
        if self.model_extra:
            seal_summaries(self.model_extra)
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
        """All fields as they were when they were hashed, content included; None where they are no
        longer the same, and for a document that was not sealed in this process.

        Whoever stores it need not hash it once more.
        """
        body: Mapping[str, Any] | None = vars(self).get(_SEALED)
        return body if body == self.model_dump() else None

    def metadata_view(self, body: Mapping[str, Any] | None = None) -> list[list[Any]]:
        """The fields that represent this object while its content is not loaded.

        A list of `[name, value]` pairs in a fixed order: `view` where it is set, else the
        defaults of the type. `path` is read from the source binding.
        """
        fields = body if body is not None else self.model_dump()
        names = self.view if self.view is not None else self.metadata_fields
        view = [[name, fields.get(name)] for name in ("id", "type", *names)]
        if source := fields.get("source"):
            return [[n, source.get("path") if n == "path" else value] for n, value in view]
        return view


def identity_hash(type_: str, source: Mapping[str, Any] | Source | None) -> str:
    """SHA-256 of the immutable envelope `{type, source}`: the id of every sourced object."""
    if source is None:
        return _unsourced_identity(type_)
    binding = source.model_dump() if isinstance(source, BaseModel) else source
    return hash_value({"type": type_, "source": binding})


@lru_cache(maxsize=64)
def _unsourced_identity(type_: str) -> str:
    """One for each type, which every document that is sealed or read asks for."""
    return hash_value({"type": type_, "source": None})


def content_hash(body: Mapping[str, Any]) -> str:
    """SHA-256 of the payload: all fields but the envelope and the hashes.

    A content of None and a missing content are the same payload.
    """
    return hash_value({k: v for k, v in body.items() if v is not None and k not in _NO_PAYLOAD})


class FileDocument(Document):
    """A file on a file system. `content` is None when it is deleted, not text, or too large."""

    metadata_fields = ("path", "file_type", "char_count", "nickname")

    type: str = "file"
    file_type: str = ""
    char_count: int = 0
    state: Literal["text", "binary", "huge", "listed", "deleted", "unreadable", "special"] = "text"
    """Why `content` is what it is; `listed`: the file was named by a listing and never read."""
    revision: str | None = None
    """For a binary or huge file, which has no `content`: identifies this state of it."""
    moved_to: str | None = None
    """Id of the object that the file became when it was renamed."""
    volume: str | None = None
    """Names the file system that its folder was on, and the place in it: where that is another now,
    nothing is known of the file, and it is not deleted."""


class ToolcallDocument(Document):
    """The result of one tool call: `content` is its text, `args` are the model's arguments."""

    metadata_fields = ("tool", "args_display", "status")

    type: str = "toolcall"
    tool: str
    args: dict[str, Any] = Field(default_factory=dict)
    args_display: str = ""
    status: Literal["ok", "fail"] = "ok"
    chat_ref: str = ""
    turn_ref: str | None = None
    """Id of the turn that asked for it."""
    position: int | None = None
    """Which of that turn's calls it is, from 0; of its parent's, where it has one."""
    parent_ref: str | None = None
    """Id of the tool call inside which it ran, such as a script of code mode."""
    file_refs: list[str] = Field(default_factory=list)
    file_version_ref: dict[str, Any] | None = None
    """For `read`: the version of the file that was current, and the lines asked for."""
    provider_call_id: str = ""
    """The provider's id of the call; not `id` where an earlier call has that one."""
    details: Any = None
    images: list[str] = Field(default_factory=list)
    """Hashes of the blobs that hold the result's images."""
    full_output: str | None = None
    """Hash of the blob with the untruncated output, where the host kept one."""


class ChatDocument(Document):
    """The head of a session's chat, locked. Its turns are documents of their own."""

    metadata_fields = ("session_ref", "turn_count")

    type: str = "chat"
    locked: bool = True
    session_ref: str
    """Id of the session's own object; in older documents the session's own id (`session_of`)."""
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
    """One agent's interaction: what it is keyed to and what belongs to it.

    The sets are not in here: index entries are `member` documents, changes of pool, active and
    pinned set are in the call records, so that a long session never rewrites a growing list.
    """

    metadata_fields = ("harness", "session_id")

    type: str = "session"
    harness: str = "pi"
    session_id: str
    chat_ref: str
    system_prompt_ref: str
    cwd: str = ""
    host_file: str | None = None
    parent_session: str | None = None
    """Session id that this one was forked or cloned from."""
    started_by: str | None = None
    """Id of the session whose agent started this one: a subagent's link to its parent."""
    untold: dict[str, str] | None = None
    """Pending notices: by handle, which files changed on disk the model has yet to hear of."""
    behind: dict[str, str] | None = None
    """By handle, the hash of the text that the agent knows of a file which something else has
    changed since: what a write of it must be compared with."""
    begun_by: str | None = None
    """That it began at this user's side (`memory/trust.py`): what its chat has as the user's words
    is theirs."""
    private: bool | None = None
    """Whether it keeps to itself what is said in it; settled before its first message."""
    observing_mode: str | None = None
    """The kind of work that its user has said it is observed as (`model/observations.py`), or
    `guess`; None where they have said nothing."""

    @staticmethod
    def is_private(fields: Fields) -> bool:
        """Whether a stored session is private; `fields` as in a `Head`."""
        return fields.get("private") is True


def chat_id(session: str) -> str:
    """Id of a session's chat object."""
    return f"chat:{session}"


def session_object_id(session: str) -> str:
    """Id of a session's own object."""
    return f"session:{session}"


def session_of(session_ref: str) -> str:
    """The session that a `session_ref` means, whether it is its object's id or, as in documents of
    before, its own."""
    return session_ref.removeprefix("session:")


def system_prompt_id(session: str) -> str:
    """Id of a session's system prompt object."""
    return f"system_prompt:{session}"


def by_a_name() -> Provenance:
    """Where pointers come from: what they lead to was named."""
    return Provenance(origin="pointer", generator="system")


class PointerDocument(Document):
    """What is known of a thing without fetching it: `locator` says where it is, as a user writes
    it. It has no content."""

    metadata_fields = ("locator", "file_type")

    type: str = "pointer"
    provenance: Provenance = Field(default_factory=by_a_name)
    locator: str = ""
    file_type: str = ""
    """The extension in the name, empty where there is none."""

    @classmethod
    def of(cls, source: PointerSource, locator: str, file_type: str) -> PointerDocument:
        """The sealed object that points to a source."""
        id = identity_hash("pointer", source)
        return cls(id=id, source=source, locator=locator, file_type=file_type).seal()


FIRST_LINE_CHARS = 80

PASTE_CHARS = 8000
"""From this many characters on a text of the user's is an object, and folds."""


def by_the_user() -> Provenance:
    """Where such a text comes from."""
    return Provenance(origin="user-input", generator="human")


class UserDocument(Document):
    """What a user has written or pasted: `content` is the text, and never changes.

    It belongs to no session: the same text is the same object wherever it is pasted.
    """

    metadata_fields = ("char_count", "line_count", "first_line")

    type: str = "user"
    provenance: Provenance = Field(default_factory=by_the_user)
    char_count: int = 0
    line_count: int = 0
    first_line: str = ""
    """The first line that is not blank, as far as it is short."""

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
    """Id of the object of a text, by the text's hash."""
    return f"user:{text_hash[:32]}"


# A listing reads a field or two of thousands of versions, so a view validates nothing and makes no
# document: what was stored was validated then.

M = TypeVar("M", bound=BaseModel)


def view_of(kind: type[M], fields: Mapping[str, Any]) -> M:
    """The fields of a version, or of a part of one, as attributes. Its methods are not there.

    A field that the version lacks has its default, as in versions from before there was that field.
    Raises `KeyError` for one without a default, and for `content`, which is loaded with `get`.
    """
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
    known = kind.model_fields.get(name)
    part = None if known is None else _part(known.annotation)
    default: Any = None  # called where the field is absent
    if known is not None and not known.is_required() and name != "content":
        default = known.default_factory or (lambda: known.default)

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
    """The class of a field that is a model of its own; None for all others."""
    is_union = get_origin(annotation) in (Union, UnionType)
    for each in get_args(annotation) if is_union else (annotation,):
        if isinstance(each, type) and issubclass(each, BaseModel):
            return each
    return None
