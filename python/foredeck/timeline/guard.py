"""The stale-edit guard: writes must not undo changes that their author has not seen.

A foreign change blocks the call and shows the difference; the file stays locked until the result.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from foredeck.context.intake.file_changes import look_now, look_now_at
from foredeck.context.rendering import contains_lines
from foredeck.context.state.chat import Chat
from foredeck.context.state.objects import Objects
from foredeck.context.state.request import Inbox
from foredeck.model.identity import encode_text
from foredeck.model.quoting import block
from foredeck.model.quoting import name as quote
from foredeck.regular_files import open_regular
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.looking import fingerprint_at
from foredeck.sources.recorded import whole_text
from foredeck.sources.snapshots import FileSnapshot, ToolEvent
from foredeck.sources.tool_calls import (
    WRITERS,
    ReadRange,
    apply_edits,
    edits_of,
    parse_read_range,
    path_argument,
)
from foredeck.store.location import is_held
from foredeck.timeline.differences import difference, is_disjoint
from foredeck.timeline.knowledge import (
    UNKNOWN_HASH,
    Knowledge,
    KnownState,
    ToolWindows,
    state_of,
    state_of_text,
)
from foredeck.timeline.states import capture

GuardMode = Literal["block", "warn", "off"]

SEEN_BYTES = 2 * 1024 * 1024

RECENT_S = 2.0
"""A file changed this recently may have changed while being read."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`block` is the reason not to run, `notice` joins the result; both are for the model."""

    block: str | None = None
    notice: str | None = None


@dataclass(eq=False)
class ToolGuard:
    """Checks one session's tool calls, on the engine's thread."""

    _objects: Objects
    _chat: Chat
    _inbox: Inbox
    _filesystems: FilesystemMap
    _locks: PathLocks
    _mode: GuardMode
    _writes: dict[str, PendingWrite] = field(default_factory=dict)
    _shown: dict[str, KnownState] = field(default_factory=dict)
    """What this answer's refusals have shown, which the agent knows from its next answer on."""

    def __post_init__(self) -> None:
        self._knowledge = Knowledge(self._objects, self._inbox)
        self.windows = ToolWindows(self._objects, self._filesystems)

    def prepare(self, call_id: str, tool: str, arguments: Mapping[str, Any]) -> Verdict:
        """Checks a tool that may write files before it runs."""
        if self._mode == "off":
            return Verdict()
        if tool in WRITERS:
            path = path_argument(arguments)
            return (
                Verdict() if path is None else self._prepare_write(call_id, tool, path, arguments)
            )
        self._look_at_changes()
        self.windows.begin(call_id)
        return Verdict()

    def _look_at_changes(self) -> None:
        """Reads earlier changes, so that they are not taken for the command's."""
        suspects = self.windows.suspects()
        if suspects:
            look_now_at(self._objects, self._inbox, suspects)
        for local in suspects:
            self.windows.note_look(local)
            object_id = self._filesystems.locate_local(local).object_id
            if not self._knowledge.is_current(object_id):
                self._knowledge.stale.add(object_id)

    def _prepare_write(
        self, call_id: str, tool: str, path: str, arguments: Mapping[str, Any]
    ) -> Verdict:
        place = self._filesystems.locate(path, self._objects.info.cwd)
        if place.local is None:
            return Verdict()
        if not self._locks.acquire(place.object_id, call_id):
            busy = f"Nothing was written: another session is writing {path} at this moment. "
            return Verdict(block=f"{busy}Make the same {tool} again.")
        # Before the look, which stores what others have made of the file as the newest version.
        self._knowledge.recall(place.object_id)
        snapshot = look_now(self._objects, self._inbox, path)
        self.windows.note_look(place.local)
        now = state_of(snapshot)
        verdict = Verdict() if now is None else self._judge(snapshot, now, tool, arguments)
        if verdict.block is not None:
            self._locks.release(call_id)
        elif now is not None:
            alone = not self._share(place.object_id)
            text = self._knowledge.text_of(place.object_id, now)
            makes = result_of(tool, arguments, text) if alone else None
            self._writes[call_id] = PendingWrite(place.object_id, now, text, alone, makes)
        return verdict

    def _share(self, object_id: str) -> bool:
        """Marks pending writes of the file as shared; returns whether there are any."""
        others = [write for write in self._writes.values() if write.object_id == object_id]
        for write in others:
            write.alone = False
        return bool(others)

    def _judge(
        self, snapshot: FileSnapshot, now: KnownState, tool: str, arguments: Mapping[str, Any]
    ) -> Verdict:
        id, expected = snapshot.object_id, self._knowledge.of(snapshot.object_id)
        if expected is None or expected.source_hash == now.source_hash or self._is_shown(id, now):
            return Verdict()
        if self._is_writing(id, now) or (tool == "edit" and now.source_hash is None):
            return Verdict()  # of a file that is not there, the tool itself says so
        old = self._knowledge.text_of(id, expected)
        new = self._knowledge.text_of(id, now)
        self._knowledge.stale.add(id)
        name = self._name(snapshot)
        what = "was changed" if expected.source_hash else "was made anew"
        what = what if now.source_hash else "was deleted"
        diff, clear = None, False
        if old is not None and new is not None:
            diff = difference(old, new)
            clear = tool == "edit" and is_disjoint(old, new, edits_of(arguments))
        if clear or self._mode == "warn":
            return Verdict(notice=passed_text(name, diff, what))
        self._shown[id] = now
        return Verdict(block=stale_text(name, tool, what, diff))

    def _is_writing(self, object_id: str, now: KnownState) -> bool:
        """Whether a call of the same answer has begun to write it."""
        return any(
            write.object_id == object_id and write.before.source_hash != now.source_hash
            for write in self._writes.values()
        )

    def _is_shown(self, object_id: str, now: KnownState) -> bool:
        index = self._objects.index
        entry = index.entries.get(index.by_object.get(object_id, 0))
        if entry is None or entry.newest.text_hash != now.source_hash:
            return False
        plan = self._chat.branch.plan
        holder = plan.newest_holder(entry.ordinal)
        return holder is not None and plan.ops[holder].version == entry.newest.version

    def _name(self, snapshot: FileSnapshot) -> str:
        index = self._objects.index
        ordinal = index.by_object.get(snapshot.object_id)
        if ordinal is None:
            return quote(snapshot.path)
        return f"@{ordinal} {quote(self._objects.name_of(index.entries[ordinal]))}"

    def observed(self, call_id: str, event: ToolEvent, snapshots: list[FileSnapshot]) -> None:
        write = self._writes.pop(call_id, None)
        self._locks.release(call_id)
        for snapshot in snapshots:
            state = state_of(snapshot)
            local = self._filesystems.locate_local(snapshot.path).local
            if state is None or local is None:
                continue
            if snapshot.role == "written" and not event.is_error:
                self._shown.pop(snapshot.object_id, None)
                self._learn_written(event, snapshot, state, write)
            elif snapshot.role == "read" and not event.is_error:
                self._learn_read(event, snapshot, state, local)
            elif self._is_own(event, snapshot, local) or self._shows_whole(event, snapshot, state):
                self._knowledge.learn(snapshot.object_id, state)
            self.windows.note_look(local)

    def saw(self, paths: Iterable[str]) -> None:
        """Stores what another program saves during a write."""
        for local in paths:
            id = self._filesystems.locate_local(local).object_id
            write = next((w for w in self._writes.values() if w.object_id == id), None)
            if write is None or write.makes is None:
                continue
            captured = capture(local, SEEN_BYTES)
            if captured.data is None or captured.state.digest == write.before.source_hash:
                continue
            if not encode_text(write.makes).startswith(captured.data):
                look_now_at(self._objects, self._inbox, [id])
                write.saved = captured.state.digest

    def _learn_written(
        self,
        event: ToolEvent,
        snapshot: FileSnapshot,
        found: KnownState,
        write: PendingWrite | None,
    ) -> None:
        id, state = snapshot.object_id, state_after(event, write)
        # Calls of one answer run side by side: the others find what this one has made.
        self._share(id)
        ordinal = self._objects.index.by_object.get(id)
        if state is None or state.source_hash == found.source_hash:
            self._knowledge.learn(id, found)
            if ordinal is not None and write is not None and write.saved is not None:
                self._inbox.notices.add(ordinal, "overwritten")
            return
        self._knowledge.learn(id, state)
        if ordinal is not None:
            # Saved between the check and the tool, or between the tool and this look.
            self._inbox.notices.add(ordinal, "changed")

    def _learn_read(
        self, event: ToolEvent, snapshot: FileSnapshot, found: KnownState, local: str
    ) -> None:
        id, whole = snapshot.object_id, whole_text(event)
        text = self._knowledge.text_of(id, found)
        range_ = parse_read_range(event.input, event.text)
        is_found = text is None or range_ is None or _shows(text, range_)
        # Or nobody has written to it meanwhile: an extension shows files in a way of its own.
        if is_found or self.windows.is_unchanged(local) or not _is_recent(local):
            self._knowledge.learn(id, found)
        elif whole is not None:
            self._knowledge.learn(id, state_of_text(whole))
        elif self._knowledge.of(id) is None:
            self._knowledge.learn(id, KnownState(UNKNOWN_HASH))

    def _is_own(self, event: ToolEvent, snapshot: FileSnapshot, local: str) -> bool:
        """Whether the tool made the file's present state, from what the agent knew."""
        if local not in event.changed or snapshot.object_id in self._knowledge.stale:
            return False
        return not self._is_another_sessions(snapshot)

    def _is_another_sessions(self, snapshot: FileSnapshot) -> bool:
        # Then its engine has stored that already, as a tool's doing; a watcher's versions say
        # nothing of who it was.
        if snapshot.document is not None or snapshot.head is None:
            return False
        author = (snapshot.head.fields.get("provenance") or {}).get("generator")
        # A session that ours has started works for it.
        ours = {"started_by": self._objects.info.id}
        return author in ("agent", "tool") and not self._objects.store.query(
            "session", ours, limit=1
        )

    def _shows_whole(self, event: ToolEvent, snapshot: FileSnapshot, state: KnownState) -> bool:
        expected = self._knowledge.of(snapshot.object_id)
        if expected is None or expected.source_hash == state.source_hash:
            return False
        text = self._knowledge.text_of(snapshot.object_id, state)
        return bool(text) and contains_lines(event.text, text or "")

    def forget(self) -> None:
        """Drops state of tools that stopped; the model now knows what refusals showed."""
        for object_id, state in self._shown.items():
            self._knowledge.learn(object_id, state)
        self._shown.clear()
        self._writes.clear()
        self.windows.forget()
        self._locks.release_all()


def _shows(text: str, shown: ReadRange) -> bool:
    plain, lines = _plain(text), _plain(shown.text)
    return plain == lines if shown.complete else not lines or contains_lines(plain, lines)


def _plain(text: str) -> str:
    # Tools show text without its byte order mark, and with the line ends of Unix.
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _is_recent(local: str) -> bool:
    stamp = fingerprint_at(local)
    return stamp is not None and time.time() - stamp[3] / 1e9 < RECENT_S


@dataclass(slots=True)
class PendingWrite:
    """A checked write or edit that has not ended."""

    object_id: str
    before: KnownState
    text: str | None
    alone: bool = True
    """No other call has written the file since."""
    makes: str | None = None
    """What the call leaves in the file, if certain."""
    saved: str | None = None
    """Hash of what another program has saved since."""


def state_after(event: ToolEvent, write: PendingWrite | None) -> KnownState | None:
    """What a call must have left in its file, if certain."""
    text = whole_text(event) if event.tool == "write" else None
    if event.tool != "write" and write is not None and write.alone:
        text = result_of(event.tool, event.input, write.text)
    return None if text is None else state_of_text(text)


def result_of(tool: str, arguments: Mapping[str, Any], before: str | None) -> str | None:
    """What a call makes of a file with `before` as content, if certain."""
    if tool == "write":
        content = arguments.get("content")
        return content if isinstance(content, str) else None
    return None if before is None else apply_edits(before, edits_of(arguments))


def stale_text(name: str, tool: str, what: str, diff: str | None) -> str:
    """Tells the model why a write or edit did not run."""
    if diff is None:
        explanation = f"{name} {what} since you last saw it, and not by you. "
    else:
        explanation = (
            f"{name} was changed by something else since you last saw it. "
            f"The difference since:\n{block(diff)}\nGo on from this. "
        )
    return f"Nothing was written: {explanation}The same {tool} again goes through."


def passed_text(name: str, diff: str | None, what: str = "") -> str:
    """Text for the result of an edit clear of foreign changes, or with `guard = "warn"`."""
    if diff is None:
        return f"[foredeck] {name} {what} since you last saw it, and not by you."
    changed = f"[foredeck] Something else also changed {name} since you last saw it:"
    return f"{changed}\n{block(diff)}"


WAIT_S = 0.03
"""Seconds; a tool passes unchecked after 50 ms."""
HOLD_S = 10.0
"""An older lock belongs to a hanging tool or engine."""
_PAUSE_S = 0.001
_LOCK_FOLDER = "locks"


@dataclass(slots=True)
class _Held:
    descriptor: int
    calls: set[str] = field(default_factory=set)


class PathLocks:
    """This engine's locks, each for one or more tool calls."""

    def __init__(self, home: Path) -> None:
        self._folder = home / _LOCK_FOLDER
        self._held: dict[str, _Held] = {}

    def acquire(self, object_id: str, call_id: str) -> bool:
        # Paths share 4,096 lock files, so that none has to be removed: two that share one may wait
        # for each other needlessly, for as long as one write takes.
        slot = object_id[:3]
        if (lock := self._held.get(slot)) is not None:
            lock.calls.add(call_id)
            return True
        if sys.platform == "win32":
            return True
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._wait_for(slot, call_id)

    def _wait_for(self, slot: str, call_id: str) -> bool:
        path, end = self._folder / slot, time.monotonic() + WAIT_S
        while True:
            descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
            if _locked(descriptor):
                os.utime(path)  # since when it is held
                self._held[slot] = _Held(descriptor, {call_id})
                return True
            age_s = time.time() - os.fstat(descriptor).st_mtime
            os.close(descriptor)
            # A tool that hangs must not keep others waiting for ever.
            if age_s > HOLD_S:
                return True
            if time.monotonic() >= end:
                return False
            time.sleep(_PAUSE_S)

    def release(self, call_id: str) -> None:
        """Releases a tool call's locks."""
        for slot, lock in list(self._held.items()):
            lock.calls.discard(call_id)
            if not lock.calls:
                os.close(lock.descriptor)
                del self._held[slot]

    def release_all(self) -> None:
        """Releases all: no tool runs."""
        for lock in self._held.values():
            os.close(lock.descriptor)
        self._held.clear()


def _locked(descriptor: int) -> bool:
    try:
        return not is_held(descriptor)
    except OSError:  # a file system without locks
        return False
