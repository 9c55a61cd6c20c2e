"""Renames: a missing file, and a later one with the same bytes."""

# Paths are strings here: not always UTF-8, thousands at a time.
# ruff: noqa: PTH116

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from foredeck.model.documents import FileDocument, Generator
from foredeck.model.figures import some_of
from foredeck.model.quoting import name
from foredeck.sources.filesystem import Location
from foredeck.sources.looking import Look
from foredeck.sources.recorded import location_of
from foredeck.sources.snapshots import (
    CHANGING,
    MOVED_FROM,
    FileSnapshot,
    Known,
    file_version,
    link_move,
    unchanged,
)
from foredeck.store.protocol import Head
from foredeck.store.store import Store

FileNumber = tuple[int, int]
SEARCHED_ENTRIES = 20_000
"""Most directory entries per search: some 20 ms."""
TELLING_BYTES = 64
"""Fewer bytes may be equal by chance."""
MS_NS, TICK_MS = 1_000_000, 20
"""Granularity of file times."""
SHOWN = 5
"""Candidates named for a rename."""
PASSED_OVER = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
"""Large folders that people do not move files to."""


@dataclass(slots=True)
class Inspected:
    """A file's stored and present state."""

    location: Location
    known: Known
    snapshot: FileSnapshot


def deferred(met: Inspected) -> FileSnapshot:
    """The snapshot while a change does not count yet."""
    if met.snapshot.document is None:
        return met.snapshot
    return unchanged(met.location, met.snapshot.role, met.known, CHANGING)


def new_hash(met: Inspected) -> str | None:
    document = met.snapshot.document
    return None if document is None else document.source_hash


def tie_renames(
    met: dict[str, Inspected],
    gone: Sequence[Inspected],
    arrived: list[Inspected],
    are_common: Callable[[Inspected, Inspected], bool] = lambda _old, _new: False,
) -> list[Inspected]:
    """Links missing files to ones with the same bytes; returns the unmatched.

    `are_common`: others share the bytes, so that only equal names match.
    """
    # A pair that is tied may leave another unambiguous, so this is repeated.
    unmatched = list(gone)
    while pairs := [
        (old, new)
        for old in unmatched
        if (new := _match(old, unmatched, arrived)) is not None
        and (_alike(old, new) or not are_common(old, new))
    ]:
        for old, new in pairs:
            unmatched.remove(old)
            arrived.remove(new)
            met[new.location.object_id] = new
            if old.snapshot.document is not None and new.snapshot.document is not None:
                link_move(old.snapshot.document, new.snapshot.document)
    for old in unmatched:
        places = tuple(sorted(new.location.path for new in arrived if _has_bytes_of(new, old)))
        if places:
            old.snapshot = replace(old.snapshot, candidates=places)
    return unmatched


def _match(
    old: Inspected, gone: Sequence[Inspected], arrived: Sequence[Inspected]
) -> Inspected | None:
    same = [new for new in arrived if _has_bytes_of(new, old)]
    best = max((_alike(old, new) for new in same), default=0)
    fitting = [new for new in same if _alike(old, new) == best]
    if len(fitting) != 1:
        return None
    new = fitting[0]
    rivals = [o for o in gone if o is not old and _has_bytes_of(new, o) and _alike(o, new) >= best]
    return None if rivals else new


def keeps_of_rename(last: Look | None, now: Look | None, known: Head | None) -> bool:
    """Whether a file keeps a renamed file's inode, or its times with a newer name change."""
    if now is None or now.fingerprint is None:
        return False
    if last is not None and last.fingerprint is not None:
        return last.fingerprint[:2] == now.fingerprint[:2]
    *_, written_ns, changed_ns = now.fingerprint
    return (
        known is not None and written_ns // MS_NS <= known.time_ms <= changed_ns // MS_NS + TICK_MS
    )


def _has_bytes_of(new: Inspected, old: Inspected) -> bool:
    return new_hash(new) == str(old.known.file.source_hash)


def _alike(one: Inspected, other: Inspected) -> int:
    ends = (each.location.path.split("/")[::-1] for each in (one, other))
    return next((n for n, (a, b) in enumerate(zip(*ends, strict=False)) if a != b), 0)


def came_later(store: Store, head: Head, than: Head | None) -> bool:
    """Whether a file first appeared after another's version, and so may be a rename of it."""
    first = store.history(head.id)[0]
    parents = head.view(FileDocument).provenance.parent_refs
    return (
        than is not None
        and first.time_ms >= than.time_ms
        and first.id != than.id
        and first.view(FileDocument).provenance.generator == "system"
        and not any(ref.startswith(MOVED_FROM) for ref in parents)
    )


def tied(store: Store, gone: Head, new: Head) -> list[FileSnapshot]:
    """Snapshots that link a missing file to a stored one."""
    by: tuple[str, Generator] = ("renames", "human")
    place = location_of(gone.id, Known(gone, gone.fields))
    old, arrived = (
        file_version(place, gone.fields, state="deleted", by=by),
        same_again(store, new, by),
    )
    link_move(old, arrived)
    path = location_of(new.id, Known(new, new.fields)).path
    return [
        FileSnapshot(place.path, gone.id, "mentioned", old, gone, "deleted"),
        FileSnapshot(path, new.id, "mentioned", arrived, new, arrived.state),
    ]


def same_again(store: Store, head: Head, by: tuple[str, Generator]) -> FileDocument:
    """A version equal to the newest, linked to the file's old name."""
    fields = head.fields
    document = store.get(head.id, FileDocument, head.token)
    return file_version(
        location_of(head.id, Known(head, fields)),
        fields,
        state=fields["state"],
        content=None if document is None else document.content,
        source_hash=fields.get("source_hash"),
        revision=fields.get("revision"),
        size=fields.get("size"),
        file_type=fields.get("file_type"),
        by=by,
    )


def unclear_rename(path: str, candidates: Sequence[str]) -> str:
    names = some_of([*map(name, candidates)], SHOWN)
    return (
        f"{name(path)} is gone, and its bytes are in {names}. If it was renamed to one of "
        f"them, `foredeck index --renamed {name(path)} NEW` says so: pin, nickname and links "
        "follow."
    )


def search_renamed(number: FileNumber, near: str, within: str) -> str | None:
    """The path with this inode now: in `near`, then below `within`."""
    return next(
        (path for number_there, path in _walked(near, within) if number_there == number), None
    )


def search_sizes(size: int, near: str, within: str) -> list[str]:
    """Paths of files with this size, in the same places."""
    paths = []
    for _, path in _walked(near, within):
        with suppress(OSError, ValueError):  # gone since it was listed
            if os.lstat(path).st_size == size:
                paths.append(path)
    return list(dict.fromkeys(paths))


def _walked(near: str, within: str) -> Iterator[tuple[FileNumber, str]]:
    files, folders = _entries(near, SEARCHED_ENTRIES)
    remaining = SEARCHED_ENTRIES - len(files) - len(folders)
    yield from files
    deeper = deque([within])
    while remaining > 0 and deeper:
        files, folders = _entries(deeper.popleft(), remaining)
        remaining -= len(files) + len(folders)
        deeper.extend(folders)
        yield from files


def _entries(folder: str, most: int) -> tuple[list[tuple[FileNumber, str]], list[str]]:
    files: list[tuple[FileNumber, str]] = []
    folders: list[str] = []
    try:
        device = os.stat(folder).st_dev
        with os.scandir(folder) as entries:
            for entry, _ in zip(entries, range(most), strict=False):
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in PASSED_OVER:
                        folders.append(entry.path)
                elif not entry.is_symlink():
                    files.append(((device, entry.inode()), entry.path))
    except (OSError, ValueError):
        pass  # gone, or not for us to read
    return files, folders
