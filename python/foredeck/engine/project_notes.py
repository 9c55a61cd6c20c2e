# Paths are strings here: not always UTF-8, thousands at a time.
# ruff: noqa: PTH112
"""Takes in project notes changed between sessions, since they are asked for by title."""

from __future__ import annotations

import heapq
import logging
import os
import posixpath
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from foredeck.config import Config
from foredeck.context.intake.file_changes import look_again, take_in_unmet
from foredeck.context.state.objects import Objects
from foredeck.context.state.request import Inbox
from foredeck.context.state.session import SessionFolder
from foredeck.derived.layer import LayerBusy, TimeBudget
from foredeck.errors import StoreUnavailable
from foredeck.notes import StillReading, live_graph
from foredeck.notes.parsed import MARKDOWN
from foredeck.sources.filesystem import FilesystemMap, Location, is_within
from foredeck.sources.projects import checkout_of, is_outside
from foredeck.store.protocol import portions
from foredeck.store.store import Store

log = logging.getLogger(__name__)

MOST = 300
"""Most files read, newest first; `foredeck index` takes in larger vaults."""

MOST_BYTES = 16 * 1024 * 1024
"""Of all these files."""

MOST_SEEN = 20_000

PORTION = 20
"""Files between two looks at the clock."""


class _NoteFile(NamedTuple):
    time: float
    path: str
    """As the agent names it."""
    bound: str
    """As it is bound."""
    size: int


@dataclass(slots=True)
class _Listing:
    """Files in the note folders.

    `is_whole`: nothing was skipped. `outside`: something leads out of the project.
    """

    files: list[_NoteFile] = field(default_factory=list)
    bounds: list[str] = field(default_factory=list)
    is_whole: bool = True
    outside: bool = False


LEFT_OUT = (
    "Notes behind a link that leads out of this project are left out. If they are yours, name "
    "their folder in notes.folders of your own configuration."
)


@dataclass(frozen=True, slots=True)
class ProjectNotes:
    """The note folders, taken in within the opening's time."""

    config: Config
    objects: Objects
    inbox: Inbox
    filesystems: FilesystemMap
    wait: TimeBudget

    def begin(self) -> str:
        """Updates the store from them."""
        config, objects, wait = self.config, self.objects, self.wait
        try:
            with wait.spent() as left_s:
                listing = _list(config, self.filesystems, time.monotonic() + left_s)
            if listing.bounds:
                gone = _gone(config, objects.store, listing, wait) if listing.is_whole else []
                with wait.spent() as left_s:
                    until = time.monotonic() + left_s
                    _take_in(objects, self.inbox, gone, _chosen(listing.files), until)
        except StoreUnavailable as error:
            log.info("notes are not looked at: %s", error)
        except (OSError, ValueError):
            # The session opens all the same.
            log.exception("notes are not looked at")
        else:
            if listing.outside:
                self.inbox.notify(LEFT_OUT)
        return ""


def project_notes(
    config: Config, objects: Objects, inbox: Inbox, session_folder: SessionFolder, wait: TimeBudget
) -> ProjectNotes | None:
    """None in a replay."""
    if not objects.info.is_live:
        return None
    return ProjectNotes(config, objects, inbox, session_folder.filesystems, wait)


def _list(config: Config, filesystems: FilesystemMap, until: float) -> _Listing:
    top = checkout_of(filesystems.cwd, filesystems) or filesystems.cwd
    listing, room = _Listing(), iter(range(MOST_SEEN))
    for name in config.notes.folders:
        folder = posixpath.join(top, name)
        place = filesystems.locate(folder)
        if place.local is None or not os.path.isdir(place.local):
            continue
        # What is named outside the project is named by the user: a project may not.
        is_users = is_outside(name)
        within = place.local if is_users else filesystems.locate(top).local or ""
        # Others may have written the project: a link of theirs must not bring in what is the
        # user's.
        if not is_within(place.local, within):
            listing.outside = True
            continue
        listing.bounds.append(place.source.path)
        for entry in _entries(place.local):
            # A folder may be huge, or behind a slow mount.
            if next(room, None) is None or time.monotonic() > until:
                listing.is_whole = False
                return listing
            if entry.name.rpartition(".")[2].lower() in MARKDOWN:
                _take(listing, entry, folder, place, within, filesystems)
    return listing


def _take(
    found: _Listing,
    entry: os.DirEntry[str],
    folder: str,
    place: Location,
    within: str,
    filesystems: FilesystemMap,
) -> None:
    with suppress(OSError):  # gone since it was listed
        # The same for a single file.
        if entry.is_symlink() and not is_within(filesystems.real(entry.path), within):
            found.outside = True
        elif entry.is_file():
            status = entry.stat()
            below = os.path.relpath(entry.path, place.local).replace(os.sep, "/")
            path, bound = posixpath.join(folder, below), posixpath.join(place.source.path, below)
            found.files.append(_NoteFile(status.st_mtime, path, bound, status.st_size))


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    folders = [folder]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                yield entry


def _chosen(files: list[_NoteFile]) -> list[_NoteFile]:
    room_left, chosen = MOST_BYTES, []
    for file in heapq.nsmallest(MOST, files, key=lambda file: (-file.time, file.path)):
        if file.size <= room_left:
            room_left -= file.size
            chosen.append(file)
    return chosen


def _take_in(
    objects: Objects, inbox: Inbox, gone: list[str], files: list[_NoteFile], until: float
) -> None:
    """Takes in files while time lasts; the next session continues."""
    if gone:
        look_again(objects, inbox, gone)
    for part in portions(files, PORTION):
        ids = {file.path: objects.source.identify(file.path, objects.info.cwd)[0] for file in part}
        # A file that the store has is looked at for a new version, any other is taken in.
        stored = objects.store.heads(ids.values())
        look_again(objects, inbox, [id for id in ids.values() if id in stored])
        take_in_unmet(objects, [path for path, id in ids.items() if id not in stored])
        if time.monotonic() > until:
            return


def _gone(config: Config, store: Store, listing: _Listing, wait: TimeBudget) -> list[str]:
    try:
        with wait.spent() as left_s, live_graph(store, config.home, left_s, chats=False) as graph:
            markdown = graph.markdown()
    except (StillReading, LayerBusy) as error:
        log.info("deleted notes are not looked for: %s", error)
        return []
    within = tuple(f"{bound.rstrip('/')}/" for bound in listing.bounds)
    there = {file.bound for file in listing.files}
    return sorted(
        node.id
        for node, _ in markdown
        if (node.path or "").startswith(within) and node.path not in there
    )
