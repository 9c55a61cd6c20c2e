# Paths are strings here: not always UTF-8.
# ruff: noqa: PTH112
"""Stores what a rewind needs: each path that a tool changes, before and after."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from foredeck.context.state.chat import Chat
from foredeck.errors import Conflict
from foredeck.model.messages import put_blob
from foredeck.model.records import MISSING, FileChangeDocument, PathChange, PathState, change_id
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.looking import Fingerprint, fingerprint_at, is_fresh
from foredeck.sources.renames import PASSED_OVER
from foredeck.sources.snapshots import ToolEvent
from foredeck.sources.tool_calls import GUESSES, WRITERS, path_argument, touched_paths
from foredeck.store.protocol import Batch
from foredeck.store.store import Store
from foredeck.timeline.command_versions import CommandVersions
from foredeck.timeline.repositories import RepositoryLook, changed_since, look_at
from foredeck.timeline.states import Captured, capture, own_path

GUESSED_BYTES = 2 * 1024 * 1024
"""Larger files are not read before a command."""
# The engine lives as long as the agent does: what it holds in memory is bounded.
KNOWN_BYTES = 32 * 1024 * 1024
"""In memory between commands, over all files."""
BUDGET_SHARE = 0.6
"""Of the host's waiting time, for reading before a command."""
WARMING_S = 0.2
"""Seconds of reading after a command, for the next one."""
ENDING_S = 0.3
"""Seconds of reading changed files before requests have to wait; later states are read while
idle."""
FOLDER_FILES = 2000
"""In a larger working folder git is asked."""
MANY_FILES = 20_000
"""In a larger folder outside git only known or named files are read."""


@dataclass(slots=True)
class _Running:
    """A running command, and the state before it."""

    before: dict[str, Captured] = field(default_factory=dict)
    unread: dict[str, Fingerprint | None] = field(default_factory=dict)
    """Unread for time or size; only changes are noticed."""
    repository: RepositoryLook | None = None
    """Git's view of a folder too large to search."""
    blind: bool = False
    """Whether git said nothing."""
    whole: bool = False
    """Whether the folder was searched, so that new files are new."""
    written: set[str] = field(default_factory=set)
    """Paths of writes running beside it."""


@dataclass(slots=True)
class _Unfinished:
    """A stored change with some states still unread."""

    document: FileChangeDocument
    left: dict[str, Fingerprint | None]
    """Their time stamps at the command's end."""
    found: dict[str, PathState] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)


class ChangeKeeper:
    """Stores the changes of one session's tools. `held_s`: how long the host holds tools back."""

    def __init__(
        self, chat: Chat, filesystems: FilesystemMap, held_s: float, *, idle: bool = False
    ) -> None:
        self._chat = chat
        self._filesystems = filesystems
        self._held_s = held_s
        self._ending_s = ENDING_S if idle else math.inf
        self._versions = CommandVersions(chat, filesystems)
        self._writes: dict[str, FileChangeDocument] = {}
        self._commands: dict[str, _Running] = {}
        self._next: int | None = None
        self._looks: dict[str, tuple[Fingerprint, Captured]] = {}
        """The last look at each path, while its time stamp stays."""
        self._held = 0
        """Bytes of all these."""
        self._is_large = False
        self._is_said = False
        self._to_warm: Iterator[str] | None = None
        """Files still to be read before the first command."""
        self._unfinished: _Unfinished | None = None

    def go_on(self, seconds: float) -> bool:
        """While idle, reads and stores; returns whether work remains."""
        end = time.monotonic() + seconds
        if self._unfinished is not None and self._finish(end):
            return True
        if self._versions.is_behind:
            return self._versions.store(end)
        if self._to_warm is None:
            self._to_warm = iter(self._look_around(_Running(), end + WARMING_S))
        for local in self._to_warm:
            self._look(local, math.inf)
            if time.monotonic() > end:
                return True
        return False

    def _finish(self, until: float) -> bool:
        """Reads untouched files; returns whether some remain."""
        unfinished = self._unfinished
        assert unfinished is not None
        while unfinished.left and time.monotonic() < until:
            path, stamp = unfinished.left.popitem()
            if fingerprint_at(path) == stamp:
                unfinished.found[path] = _kept(capture(path), unfinished.blobs)
        if not unfinished.left:
            self._store_finished()
        return bool(unfinished.left)

    def _store_finished(self) -> None:
        """Stores a change; unread states stay unknown."""
        unfinished, self._unfinished = self._unfinished, None
        if unfinished is None or not unfinished.found:
            return
        changes = []
        for change in unfinished.document.paths:
            after = unfinished.found.get(change.path, change.after)
            if after != change.before:  # or it only looked as if it had been touched
                changes.append(change.model_copy(update={"after": after}))
        unfinished.document.paths = changes
        read_changes = [change for change in changes if change.path in unfinished.found]
        chosen = self._versions.choose(
            unfinished.document.tool_call, read_changes, unfinished.blobs
        )
        chosen.note(unfinished.document)
        self._chat.store.commit(Batch([unfinished.document.seal()], unfinished.blobs))

    def begin(
        self, call_id: str, tool: str, arguments: Mapping[str, Any], known: Callable[[], list[str]]
    ) -> None:
        """Records the state before a tool.

        `known`: local paths of the session's files.
        """
        # The host runs the tool when this returns, or its wait is over.
        self.settle((1 - BUDGET_SHARE) * self._held_s)
        path = path_argument(arguments)
        if tool in WRITERS:
            if path is not None:
                self._begin_write(call_id, tool, path)
            return
        # What a write beside the command makes is its own change, not the command's.
        running = _Running(written={c.path for d in self._writes.values() for c in d.paths})
        end = time.monotonic() + BUDGET_SHARE * self._held_s
        folder = self._look_around(running, end)
        places = dict.fromkeys([*self._guessed(tool, arguments), *known(), *folder])
        for local in places:
            stamp, captured = self._look(local, end)
            if captured is None:
                running.unread[local] = stamp
            else:
                running.before[local] = captured
        self._commands[call_id] = running

    def _look_around(self, running: _Running, end: float) -> list[str]:
        """Files to read before a command: all of a small folder, else those that git cannot
        tell."""
        if not self._is_large:
            files, running.whole = files_below(self._cwd, FOLDER_FILES)
            self._is_large = not running.whole
            if running.whole:
                return files
        running.repository = look_at(self._cwd, end)
        if running.repository is not None:
            return running.repository.paths
        files, running.whole = files_below(self._cwd, MANY_FILES, end)
        running.blind = not running.whole
        return files

    @property
    def _cwd(self) -> str:
        place = self._filesystems.locate(self._chat.info.cwd, self._chat.info.cwd)
        return place.local or self._chat.info.cwd

    def _look(self, local: str, end: float) -> tuple[Fingerprint | None, Captured | None]:
        stamp, last = fingerprint_at(local), self._looks.get(local)
        if stamp is not None and last is not None and last[0] == stamp and not is_fresh(stamp):
            return last
        # Reading a large file would use up the time for all others.
        size = 0 if stamp is None else stamp[2]
        if size > min(GUESSED_BYTES, KNOWN_BYTES - self._held) or time.monotonic() > end:
            return stamp, None
        captured = capture(local)
        self._remember(local, stamp, captured)
        return stamp, captured

    def _remember(self, local: str, seen: Fingerprint | None, found: Captured) -> None:
        _, last = self._looks.pop(local, (None, None))
        self._held -= 0 if last is None else len(last.data or b"")
        if seen is not None and found.state.kind == "file":
            self._looks[local] = (seen, found)
            self._held += len(found.data or b"")

    def _begin_write(self, call_id: str, tool: str, path: str) -> None:
        blobs: dict[str, bytes] = {}
        changes = []
        for local in self._places(path):
            captured = capture(local)
            changes.append(PathChange(path=local, before=_kept(captured, blobs)))
        if changes:
            document = self._store_new(call_id, tool, changes, [], blobs)
            self._writes[call_id] = document
            for running in self._commands.values():
                running.written.update(change.path for change in changes)

    def end(self, call_id: str) -> None:
        """Stores a tool's changes at its end."""
        blobs: dict[str, bytes] = {}
        document = self._writes.pop(call_id, None)
        running = self._commands.pop(call_id, None)
        if document is not None:
            document.paths = [
                change.model_copy(update={"after": _kept(capture(change.path), blobs)})
                for change in document.paths
            ]
            self._chat.store.commit(Batch([document.seal()], blobs))
        elif running is not None:
            unread: dict[str, Fingerprint | None] = {}
            changes, uncovered = self._changed_by_command(running, blobs, unread)
            # That commands ran unseen is stored once, not with each command.
            is_news = running.blind and not self._is_said
            self._is_said |= running.blind
            if changes or uncovered or is_news:
                stored = self._store_new(
                    call_id, "bash", changes, uncovered, blobs, blind=running.blind
                )
                if unread:
                    self._store_finished()  # that of a command that ran beside it
                    self._unfinished = _Unfinished(stored, unread)

    def _changed_by_command(
        self, running: _Running, blobs: dict[str, bytes], unread: dict[str, Fingerprint | None]
    ) -> tuple[list[PathChange], list[str]]:
        after, now = dict.fromkeys([*running.before, *running.unread]), time.monotonic()
        end, late = now + WARMING_S, now + self._ending_s
        if running.whole:
            after |= dict.fromkeys(files_below(self._cwd, MANY_FILES)[0])
        changes, uncovered = [], self._add_changes_of_repository(running)
        after |= dict.fromkeys(running.before)
        for path in after:
            if path in running.written:
                continue
            if path in running.unread:
                if fingerprint_at(path) != running.unread[path]:
                    uncovered.append(path)
                continue
            before = running.before.get(path, Captured(MISSING))
            stamp, captured = self._look(path, end)
            if captured is None and time.monotonic() > late:
                unread[path] = stamp
                changes.append(PathChange(path=path, before=_kept(before, blobs)))
                continue
            captured = captured or capture(path)
            kinds = {before.state.kind, captured.state.kind}
            # Folders are made and removed with their files.
            if captured.state != before.state and not kinds <= {"missing", "other"}:
                states = _kept(before, blobs), _kept(captured, blobs)
                changes.append(PathChange(path=path, before=states[0], after=states[1]))
        return changes, sorted(uncovered)

    def _add_changes_of_repository(self, running: _Running) -> list[str]:
        """Adds earlier states from git; returns the paths that have no before-image."""
        if running.repository is None:
            return []
        changed = changed_since(running.repository)
        running.blind = changed is None
        uncovered = []
        for path, before in (changed or {}).items():
            if before is None:
                uncovered.append(path)
            elif path not in running.unread:
                running.before.setdefault(path, before)
        return [path for path in uncovered if path not in running.before.keys() | running.unread]

    def forget(self) -> None:
        """Stores changes of stopped tools: none runs."""
        for call_id in [*self._writes, *self._commands]:
            self.end(call_id)
        self.store_versions()

    def store_versions(self) -> None:
        """Versions files after a command's result; many continue while idle."""
        self._versions.store(time.monotonic() + self._ending_s)

    def settle(self, seconds: float = math.inf) -> None:
        """Reads and stores the rest of the last command, within `seconds`."""
        until = time.monotonic() + seconds
        if self._unfinished is not None:
            self._finish(until)
            self._store_finished()
        if self._versions.is_behind:
            self._versions.store(until)

    def _store_new(
        self,
        call_id: str,
        tool: str,
        changes: list[PathChange],
        uncovered: list[str],
        blobs: dict[str, bytes],
        *,
        blind: bool = False,
    ) -> FileChangeDocument:
        chosen = self._versions.choose(call_id, changes if tool == "bash" else [], blobs)
        while True:
            self._next = self._next or next_ordinal(self._chat.store, self._chat.info.id)
            document = FileChangeDocument(
                id=change_id(self._chat.info.id, self._next),
                session=self._chat.info.id,
                ordinal=self._next,
                tool=tool,
                tool_call=call_id,
                call=self._chat.branch.call,
                paths=changes,
                uncovered=uncovered,
                blind=blind,
            )
            chosen.note(document)
            try:
                self._chat.store.commit(Batch([document.seal()], blobs, {document.id: None}))
            except Conflict:
                # A rewinding in another process has taken this ordinal.
                self._next = None
            else:
                self._next += 1
                return document

    def _places(self, path: str) -> list[str]:
        place = self._filesystems.locate(path, self._chat.info.cwd)
        if place.local is None:
            return []
        unresolved = self._filesystems.locate(path, self._chat.info.cwd, follow=False).local
        return list(dict.fromkeys([own_path(unresolved or place.local), place.local]))

    def _guessed(self, tool: str, arguments: Mapping[str, Any]) -> list[str]:
        event = ToolEvent(tool, arguments, "", cwd=self._chat.info.cwd)
        places_found = (self._places(touch.path) for touch in touched_paths(event, GUESSES))
        return [local for places in places_found for local in places if not os.path.isdir(local)]


def next_ordinal(store: Store, session: str) -> int:
    stored = store.query("change", {"session": session})
    return max((head.view(FileChangeDocument).ordinal for head in stored), default=0) + 1


def _kept(found: Captured, blobs: dict[str, bytes]) -> PathState:
    if found.data is not None:
        put_blob(found.data, blobs)
    return found.state


def files_below(folder: str, limit: int, until: float = math.inf) -> tuple[list[str], bool]:
    """Files and links below a folder, and whether these are all."""
    files: list[str] = []
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in PASSED_OVER:
                            folders.append(entry.path)
                    else:
                        files.append(entry.path)
        except OSError:
            continue
        # Folders count too: a tree of empty ones must end as well.
        if len(files) + len(folders) > limit or time.monotonic() > until:
            return [], False
    return sorted(files), True
