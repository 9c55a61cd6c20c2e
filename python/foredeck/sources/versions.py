"""New versions of file objects: the document that follows from what was known and was seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from foredeck.model.canonical import sha256_hex
from foredeck.model.documents import HASHES, SUMMARIES, FileDocument, Generator, Provenance
from foredeck.sources.classify import Look
from foredeck.sources.filesystem import Location
from foredeck.sources.indexing import FileSnapshot, Known
from foredeck.store.protocol import Head

if TYPE_CHECKING:  # looking at files takes what reading stored versions does without
    from foredeck.sources.classify import Look
    from foredeck.sources.filesystem import Location
    from foredeck.sources.indexing import FileSnapshot, Known

EMPTY_HASH = sha256_hex(b"")

MOVED_FROM = "moved_from:"
"""Prefix of the parent reference that leads from a renamed file to the object it was before."""


CAPTURED = "captured"
"""In the provenance of a version of a file that is known only because commands have changed it: no
tool has shown it to an agent."""


TOOL_CALL, SHOWN_BY, AT_MS = "tool_call", "shown_by", "at_ms"
"""In the provenance of a version: the tool call that made it; for files of a history also the one
that only showed it, and when that was."""


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
) -> FileDocument:
    """A sealed version of the file at `location`.

    What users and other parts of the program gave the object (nickname, view, lock, unknown
    fields, parent references) is carried over from `known`, the fields of the version before.
    `by`: what brought the change about, and which kind of author that is. `captured`: see
    `CAPTURED`.
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
        provenance=Provenance(
            origin=by[0],
            generator=by[1],
            parent_refs=parents,
            **({CAPTURED: True} if captured else {}),
        ),
    )
    return FileDocument.model_validate(body).seal()


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
