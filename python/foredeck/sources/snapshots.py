"""Snapshots, with new versions of file objects.

Sources never write: the caller commits, and gives uncommitted documents as `pending`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from foredeck.model.documents import (
    HASHES,
    SUMMARIES,
    Document,
    FileDocument,
    Generator,
    Provenance,
    view_of,
)
from foredeck.model.identity import sha256_hex
from foredeck.model.sources import path_of
from foredeck.store.protocol import Head
from foredeck.store.store import Store

if TYPE_CHECKING:
    # Commands that only read stored versions start faster without what looks at files.
    from foredeck.sources.filesystem import Location
    from foredeck.sources.looking import Look

Role = Literal["read", "written", "listed", "mentioned"]
Pending = Mapping[str, Document]
"""Collected, uncommitted documents by id."""
NOTHING_PENDING: Pending = MappingProxyType({})
CHANGING = "changing"
"""State of a possibly half-written file."""
OUTSIDE = "outside"
"""State of a file that foredeck may not read by itself."""
EMPTY_HASH = sha256_hex(b"")
MOVED_FROM = "moved_from:"
"""Parent reference from a renamed file to its old object."""
CAPTURED = "captured"
"""In the provenance of a version that no tool has shown."""
TOOL_CALL, SHOWN_BY, AT_MS = "tool_call", "shown_by", "at_ms"
"""In a version's provenance: the call that made it, the one that showed it, and when."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes above which a file is not read, and most paths per tool call."""

    max_file_bytes: int = 2 * 1024 * 1024
    discovered_paths: int = 200


@dataclass(frozen=True, slots=True)
class ToolEvent:
    """A tool of the agent's has run; relative paths start at `cwd`."""

    tool: str
    input: Mapping[str, Any]
    text: str
    details: Any = None
    is_error: bool = False
    cwd: str = ""
    changed: tuple[str, ...] = ()
    """Known files that changed while the tool ran, as local paths."""
    is_unheard: bool = False
    """Whether the answer was not kept, so that `text` is empty."""
    took_ms: int | None = None


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """The result of a look at a file.

    `document`: a sealed new version, if any. `head`: the store's. `state`: that of the newest
    version, or `unreachable`, `unreadable`, `missing`, `directory`, `changing` (see
    `FileSource.reconcile`) or `outside` (see `FileSource.sight`).
    """

    path: str
    object_id: str
    role: Role
    document: FileDocument | None
    head: Head | None
    state: str
    candidates: tuple[str, ...] = ()
    """Places with a missing file's bytes, if several."""


@dataclass(frozen=True, slots=True)
class Known:
    """An object's stored head and newest fields."""

    head: Head | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> FileDocument:
        return view_of(FileDocument, self.fields)

    @property
    def exists(self) -> bool:
        """Whether any version exists, pending ones included."""
        return bool(self.fields)

    @property
    def state(self) -> str:
        """The newest version's `FileDocument.state`; empty if unknown."""
        return str(self.fields.get("state", ""))

    @property
    def is_on_filesystem(self) -> bool:
        """Whether the object is at a place that this machine can read."""
        return self.exists and path_of(self.fields) is not None

    @property
    def was_read(self) -> bool:
        """Whether the file itself was opened."""
        return self.has_content and self.state != "special"

    @property
    def has_content(self) -> bool:
        """Whether more than its name is known."""
        return self.exists and self.state not in ("listed", "deleted")


def lookup(
    store: Store, ids: Iterable[str], pending: Pending = NOTHING_PENDING
) -> dict[str, Known]:
    """The stored states of objects, in one query."""
    unique = list(dict.fromkeys(ids))
    heads = store.heads(unique) if unique else {}
    states = {id: Known(head, head.fields) for id, head in heads.items()}
    for id in unique:
        if (document := pending.get(id)) is not None:
            states[id] = Known(heads.get(id), document.model_dump(exclude={"content"}))
    return {id: states.get(id) or Known() for id in unique}


def version_ms(head: Head) -> int:
    """Time of a version: by its history, else of storing."""
    at_ms = (head.fields.get("provenance") or {}).get(AT_MS)
    return at_ms if isinstance(at_ms, int) else head.time_ms


def is_captured(fields: Mapping[str, Any]) -> bool:
    return CAPTURED in (fields.get("provenance") or {})


def is_unmet(snapshot: FileSnapshot) -> bool:
    """Whether only commands brought this file in."""
    if snapshot.document is not None:
        return CAPTURED in (snapshot.document.provenance.model_extra or {})
    return snapshot.head is not None and is_captured(snapshot.head.fields)


def is_unread(fields: Mapping[str, Any]) -> bool:
    """Whether no tool has shown the file's content."""
    return fields.get("state") == "listed" or is_captured(fields)


def file_version(
    location: Location,
    known: Mapping[str, Any],
    *,
    state: str,
    content: str | None = None,
    source_hash: str | None = None,
    revision: str | None = None,
    size: int | None = None,
    file_type: str | None = None,
    by: tuple[str, Generator] = ("disk", "system"),
    captured: bool = False,
    volume: str | None = None,
) -> FileDocument:
    """A sealed version of the file at `location`, which keeps what users added to the previous one.

    `by`: cause and kind of author.
    """
    body = {k: v for k, v in known.items() if k not in HASHES and k not in ("content", "moved_to")}
    before = known.get("provenance") or {}
    parents = list(before.get("parent_refs", ()))
    body.update(
        id=location.object_id,
        type="file",
        source=location.source,
        state=state,
        content=content,
        char_count=len(content or ""),
        source_hash=source_hash,
        revision=revision,
        size=size,
        file_type=file_type if file_type is not None else file_type_of(location.path),
        volume=volume or known.get("volume"),
        provenance=Provenance(
            origin=by[0],
            generator=by[1],
            parent_refs=parents,
            **({CAPTURED: True} if captured else {}),
        ),
    )
    return FileDocument.model_validate(body).seal()


def is_written_by_agent(version: Head) -> bool:
    return (version.fields.get("provenance") or {}).get("generator") == "agent"


def tool_call_of(version: Head) -> str | None:
    id = (version.fields.get("provenance") or {}).get(TOOL_CALL)
    return id if isinstance(id, str) else None


def changed(place: Location, role: Role, known: Known, document: FileDocument) -> FileSnapshot:
    """A snapshot with a new version."""
    return FileSnapshot(place.path, document.id, role, document, known.head, document.state)


def unchanged(place: Location, role: Role, known: Known, state: str | None = None) -> FileSnapshot:
    state = state or known.state or "missing"
    return FileSnapshot(place.path, place.object_id, role, None, known.head, state)


def attribute_to_tool(snapshots: Iterable[FileSnapshot], tool_call: str) -> None:
    """Writes a call's object id into the versions that its tool made."""
    for snapshot in snapshots:
        document = snapshot.document
        if document is not None and document.provenance.generator in ("agent", "tool"):
            document.provenance = document.provenance.model_copy(update={TOOL_CALL: tool_call})
            document.seal()


def differs(known: Known, seen: Look, state: str) -> bool:
    """Whether a look found another state than stored."""
    if known.state != state:
        return True
    before = known.fields
    if state == "huge":
        now = seen.size, seen.revision
        return (before.get("size"), before.get("revision")) != now
    return bool(before.get("source_hash") != seen.source_hash)


def is_emptied(known: Known, seen: Look) -> bool:
    return seen.source_hash == EMPTY_HASH != known.fields.get("source_hash")


def link_move(gone: FileDocument, arrived: FileDocument) -> None:
    """Links the ends of a rename, and seals both."""
    gone.moved_to = arrived.id
    for name in ("view", *SUMMARIES):
        if getattr(arrived, name, None) is None and getattr(gone, name, None) is not None:
            setattr(arrived, name, getattr(gone, name))
    gone.seal()
    origin = MOVED_FROM + gone.id
    parents = arrived.provenance.parent_refs
    if origin not in parents:
        # A new one: documents made from one another may share theirs.
        refs = {"parent_refs": [*parents, origin]}
        arrived.provenance = arrived.provenance.model_copy(update=refs)
    arrived.seal()


def file_type_of(path: str) -> str:
    name = path.replace("\\", "/").rpartition("/")[2].lstrip(".")
    stem, dot, extension = name.rpartition(".")
    return extension.lower() if dot and stem else ""
