"""What a source of files answers: snapshots, with new versions of file objects.

A source never writes. It compares what is out there with what the store holds and hands back
sealed documents; the caller commits them with the rest of its transaction. Documents that are
not committed yet are passed back in as `pending`, so that several looks at one object agree. A
later document for an object takes the place of an earlier one in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from foredeck.model.canonical import sha256_hex
from foredeck.model.documents import (
    HASHES,
    SUMMARIES,
    Document,
    FileDocument,
    Generator,
    Provenance,
    view_of,
)
from foredeck.model.sources import path_of
from foredeck.store.protocol import Head, Store

if TYPE_CHECKING:
    # Commands that only read stored versions start faster without what looks at files.
    from foredeck.sources.filesystem import Location
    from foredeck.sources.looking import Look

Role = Literal["read", "written", "listed", "mentioned"]
Pending = Mapping[str, Document]
"""Documents by id that the caller has collected and not yet committed."""
NOTHING_PENDING: Pending = MappingProxyType({})
CHANGING = "changing"
"""State of a snapshot that says nothing yet: the file may be half written."""
OUTSIDE = "outside"
"""State of a snapshot of a file that is not foredeck's to read by itself."""
EMPTY_HASH = sha256_hex(b"")
MOVED_FROM = "moved_from:"
"""Prefix of the parent reference that leads from a renamed file to the object it was before."""
CAPTURED = "captured"
"""In the provenance of a version of a file that is known only because commands have changed it: no
tool has shown it to an agent."""
TOOL_CALL, SHOWN_BY, AT_MS = "tool_call", "shown_by", "at_ms"
"""In the provenance of a version: the tool call that made it; for files of a history also the one
that only showed it, and when that was."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The size in bytes above which a file is not read, and how many paths a tool call can add."""

    max_file_bytes: int = 2 * 1024 * 1024
    discovered_paths: int = 200


@dataclass(frozen=True, slots=True)
class ToolEvent:
    """One of the agent's tools has run.

    `text` is the text of its result, `details` what the host keeps beside it, `cwd` the folder
    that relative paths in it start from.
    """

    tool: str
    input: Mapping[str, Any]
    text: str
    details: Any = None
    is_error: bool = False
    cwd: str = ""
    changed: tuple[str, ...] = ()
    """Known files that have changed while the tool ran, as paths of this machine."""
    is_unheard: bool = False
    """Whether nobody has kept what the tool answered: `text` is empty for that reason."""


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """What a look at one file found.

    `path` is absolute within its file system. `document` is a sealed new version to commit, None
    when nothing changed. `head` is what the store held, None for an unknown file. `state` is the
    `FileDocument.state` of the newest version, or why there is none: `unreachable`,
    `unreadable` (what was known of it stays as it is), `missing` (not there, never known),
    `directory`, `changing` (see `FileSource.reconcile`), `outside` (see `FileSource.sight`).
    """

    path: str
    object_id: str
    role: Role
    document: FileDocument | None
    head: Head | None
    state: str
    candidates: tuple[str, ...] = ()
    """Of a file that is gone: where the same bytes are now, if it is not clear which of these
    places it was renamed to."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of an object: the store's head, and the fields of its newest version."""

    head: Head | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> FileDocument:
        """These fields by their names and types, for an object that exists."""
        return view_of(FileDocument, self.fields)

    @property
    def exists(self) -> bool:
        """Whether any version of the object exists, pending ones included."""
        return bool(self.fields)

    @property
    def state(self) -> str:
        """`FileDocument.state` of the newest version, empty for an unknown object."""
        return str(self.fields.get("state", ""))

    @property
    def is_on_filesystem(self) -> bool:
        """Whether the object is known, and bound to a place that this machine can read."""
        return self.exists and path_of(self.fields) is not None

    @property
    def was_read(self) -> bool:
        """Whether the file itself was opened, not only come across."""
        return self.has_content and self.state != "special"

    @property
    def has_content(self) -> bool:
        """Whether more than its name is known."""
        return self.exists and self.state not in ("listed", "deleted")


def lookup(
    store: Store, ids: Iterable[str], pending: Pending = NOTHING_PENDING
) -> dict[str, Known]:
    """What is known of these objects, with one question to the store."""
    wanted = list(dict.fromkeys(ids))
    heads = store.heads(wanted) if wanted else {}
    found = {id: Known(head, head.fields) for id, head in heads.items()}
    for id in wanted:
        if (document := pending.get(id)) is not None:
            found[id] = Known(heads.get(id), document.model_dump(exclude={"content"}))
    return {id: found.get(id) or Known() for id in wanted}


def version_ms(head: Head) -> int:
    """When a version came to be: by the history that it was read from, else when it was stored."""
    at_ms = (head.fields.get("provenance") or {}).get(AT_MS)
    return at_ms if isinstance(at_ms, int) else head.time_ms


def is_captured(fields: Mapping[str, Any]) -> bool:
    """Whether only commands have brought a file into the store, by the fields of a version."""
    return CAPTURED in (fields.get("provenance") or {})


def is_unmet(snapshot: FileSnapshot) -> bool:
    """Whether only commands have brought a sighted file into the store."""
    if snapshot.document is not None:
        return CAPTURED in (snapshot.document.provenance.model_extra or {})
    return snapshot.head is not None and is_captured(snapshot.head.fields)


def is_unread(fields: Mapping[str, Any]) -> bool:
    """Whether no tool has shown what is in a file: it was only named, or changed by commands."""
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
    """A sealed version of the file at `location`.

    What users and other parts of the program gave the object (nickname, view, lock, unknown
    fields, parent references) is carried over from `known`, the fields of the version before.
    `by`: what brought the change about, and which kind of author that is. `captured`: see
    `CAPTURED`, `volume`: the place of its folder, where it was seen there; else as before.
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
    """Whether a `write` or `edit` made a file's version, and not a command, a person or a
    program."""
    return (version.fields.get("provenance") or {}).get("generator") == "agent"


def tool_call_of(version: Head) -> str | None:
    """The id of the tool call that a file's version names; None where it names none."""
    named = (version.fields.get("provenance") or {}).get(TOOL_CALL)
    return named if isinstance(named, str) else None


def changed(place: Location, role: Role, known: Known, document: FileDocument) -> FileSnapshot:
    """A snapshot with a new version of a file."""
    return FileSnapshot(place.path, document.id, role, document, known.head, document.state)


def unchanged(place: Location, role: Role, known: Known, state: str | None = None) -> FileSnapshot:
    """A snapshot that makes no version; `state`: if it is not what is known."""
    state = state or known.state or "missing"
    return FileSnapshot(place.path, place.object_id, role, None, known.head, state)


def attribute_to_tool(snapshots: Iterable[FileSnapshot], tool_call: str) -> None:
    """Let the versions that a tool has made name its call: the id of the call's object."""
    for snapshot in snapshots:
        made = snapshot.document
        if made is not None and made.provenance.generator in ("agent", "tool"):
            made.provenance = made.provenance.model_copy(update={TOOL_CALL: tool_call})
            made.seal()


def differs(known: Known, seen: Look, state: str) -> bool:
    """Whether a look found another state of a file than is known; `state`: the one it found."""
    if known.state != state:
        return True
    if state == "huge":
        return _is_rewritten(known, seen)
    return bool(known.fields.get("source_hash") != seen.source_hash)


def _is_rewritten(known: Known, seen: Look) -> bool:
    """Whether a file that was too large to be kept, and is, has other bytes by now."""
    if known.fields.get("size") != seen.size:
        return True
    revision = known.fields.get("revision")
    if revision is not None or known.head is None:
        return bool(revision != seen.revision)
    # Stored before versions of such files had a revision: only its time can tell.
    return seen.mtime_ns // 1_000_000 > known.head.time_ms


def is_emptied(known: Known, seen: Look) -> bool:
    """Whether a file that had content has none now."""
    return seen.source_hash == EMPTY_HASH != known.fields.get("source_hash")


def link_move(gone: FileDocument, arrived: FileDocument) -> None:
    """Tie the two ends of a rename together, and seal both again.

    A view and summaries go along, unless the new name has some of its own.
    """
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
    """The extension in lower case without its dot, empty for a name that has none."""
    name = path.replace("\\", "/").rpartition("/")[2].lstrip(".")
    stem, dot, extension = name.rpartition(".")
    return extension.lower() if dot and stem else ""
