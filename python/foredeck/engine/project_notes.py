"""Notes of the project that somebody has written, renamed or deleted while no agent looked.

A file is otherwise met by a tool that names it. Notes are written in any editor, and asked for by
title, so the folders of notes are looked at when a session opens.
"""

from __future__ import annotations

import logging
import os
import posixpath
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from foredeck.config import Config
from foredeck.context.intake.reconcile import look_again, take_in_unmet
from foredeck.context.state.session import Session
from foredeck.derived.file import LayerBusy
from foredeck.errors import StoreUnavailable
from foredeck.notes.live import StillReading, live_graph
from foredeck.notes.names import MARKDOWN
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.opening import open_filesystems
from foredeck.sources.projects import checkout_of

log = logging.getLogger(__name__)

MOST = 300
"""Files that are looked at, those changed last. `foredeck index` takes in a larger vault."""

MOST_LISTED = 5000
"""Files that are listed. Where there are more, none counts as deleted for not being among them."""


class _NoteFile(NamedTuple):
    time: float
    path: str
    """As the agent names it."""
    object: str


def take_in_notes(config: Config, session: Session) -> None:
    """Bring the store up to date with the project's folders of notes.

    Nothing joins the session's index: a note is met when it is asked for. Where the project has no
    such folder this costs one look for it.
    """
    if not config.notes.take_in or not session.is_live:
        return
    try:
        gone, newest = _to_look_at(config, session)
    except StoreUnavailable as error:
        log.info("notes are not looked at: %s", error)
        return
    except (OSError, ValueError):
        # The session opens all the same.
        log.exception("notes are not looked at")
        return
    if gone or newest:
        look_again(session, [*gone, *(file.path for file in newest)])
        known = session.store.heads(file.object for file in newest)
        take_in_unmet(session, [file.path for file in newest if file.object not in known])


def _to_look_at(config: Config, session: Session) -> tuple[list[str], list[_NoteFile]]:
    """Ids of notes that are not where they were, and the files changed last."""
    filesystems = open_filesystems(config, session.cwd)
    folders = [folder for folder in _folders(config, filesystems) if folder.local is not None]
    if not folders:
        return [], []
    files = [file for folder in folders for file in _listed(session, folder)]
    known = _known(config, session, folders)
    gone = known - {file.object for file in files} if len(files) < MOST_LISTED else set()
    return sorted(gone), sorted(files, key=lambda file: (-file.time, file.path))[:MOST]


class _FolderOfNotes(NamedTuple):
    """A folder of notes: as the agent names it, as its files are bound, and where it is here."""

    path: str
    bound: str
    local: str | None


def _folders(config: Config, filesystems: FilesystemMap) -> Iterator[_FolderOfNotes]:
    top = checkout_of(filesystems.cwd, filesystems) or filesystems.cwd
    for name in config.notes.folders:
        place = filesystems.locate(posixpath.join(top, name))
        local = place.local if place.local is not None and Path(place.local).is_dir() else None
        yield _FolderOfNotes(posixpath.join(top, name), place.source.path, local)


def _listed(session: Session, folder: _FolderOfNotes) -> Iterator[_NoteFile]:
    """The Markdown files in a folder and below it."""
    assert folder.local is not None
    count = 0
    for here, _, names in os.walk(folder.local):
        for name in sorted(names):
            if name.rpartition(".")[2].lower() not in MARKDOWN or count == MOST_LISTED:
                continue
            local = Path(here, name)
            path = posixpath.join(folder.path, local.relative_to(folder.local).as_posix())
            with suppress(OSError):  # gone since it was listed
                changed = local.stat().st_mtime
                yield _NoteFile(changed, path, session.source.identify(path, session.cwd)[0])
                count += 1


def _known(config: Config, session: Session, folders: list[_FolderOfNotes]) -> set[str]:
    """Ids of the Markdown files that the store knows to be in the folders; none while the graph is
    still being read: then no note is taken for deleted at this opening."""
    try:
        with (
            session.layers_wait.spent() as left_s,
            live_graph(session.store, config.home, left_s, chats=False) as graph,
        ):
            markdown = graph.markdown()
    except (StillReading, LayerBusy) as error:
        log.info("deleted notes are not looked for: %s", error)
        return set()
    within = tuple(f"{folder.bound.rstrip('/')}/" for folder in folders)
    return {node.id for node, _ in markdown if (node.path or "").startswith(within)}
