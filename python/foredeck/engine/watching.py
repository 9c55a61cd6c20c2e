"""Follows a session's files between requests; tracker threads only report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from foredeck.context.intake.file_changes import parts_in_view
from foredeck.context.state.chat import Branch, Chat
from foredeck.context.state.index import Entry
from foredeck.context.state.objects import Objects
from foredeck.context.state.request import Inbox
from foredeck.hosts.host import CallSoon
from foredeck.model.sources import filesystem_source
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.snapshots import ToolEvent, is_unread
from foredeck.sources.tool_calls import touched_paths
from foredeck.sources.tracking import FileTracker

Reconcile = Callable[[Iterable[str] | None], None]
"""Looks at files that may have changed: those named, or all in the index."""


MOST_LOOKED_AT = 200
"""Files checked before a call if nothing is watched."""


class NoWatch:
    """Stands in for a `SessionWatch` if nothing is watched."""

    always_asked = False

    def follow(self) -> None: ...

    def differing(self) -> list[str]:
        return []

    def remind(self) -> None: ...

    def hold(self, call_id: str, event: ToolEvent) -> None: ...

    def hold_all(self, call_id: str) -> None: ...

    def postpone(self, files: Iterable[str]) -> None: ...

    def release(self, call_id: str | None = None) -> None: ...

    def stop(self) -> None: ...


class LooksBeforeCalls(NoWatch):
    """For hosts without time between calls: checks what is in view before each, and before the
    first all that the session has met."""

    always_asked = True

    def __init__(self, objects: Objects, chat: Chat) -> None:
        self._objects = objects
        self._chat = chat
        self._is_first = True

    def differing(self) -> list[str]:
        """Files to look at, compared by time stamps when read."""
        if self._is_first:
            self._is_first = False
            return files_met(self._objects)
        return files_in_view(self._objects, self._chat.branch)[-MOST_LOOKED_AT:]


def files_met(objects: Objects) -> list[str]:
    return [entry.object for entry in objects.index.entries.values() if entry.type == "file"]


def files_in_view(objects: Objects, branch: Branch) -> list[str]:
    entries, holders = objects.index.entries, branch.plan.holders
    ordinals = sorted(
        (n for n in holders if entries[n].type == "file"), key=lambda n: holders[n][-1]
    )
    return [*sorted(parts_in_view(objects, branch)), *(entries[n].object for n in ordinals)]


@dataclass(eq=False)
class SessionWatch:
    """Tracks a session's files and has changes reconciled."""

    always_asked: ClassVar[bool] = False

    _objects: Objects
    _chat: Chat
    _inbox: Inbox
    _filesystems: FilesystemMap
    _call_soon: CallSoon
    _reconcile: Reconcile
    _notify: Callable[[str, str], None]
    _saw_held: Callable[[Iterable[str]], None] | None = None
    """Receives files that change while a tool writes them."""
    _looked_at: int = 0
    _listed: dict[int, str] = field(default_factory=dict)
    _held: dict[str, set[str] | None] = field(default_factory=dict)
    """By call: the files that it may write, None for all."""
    _waiting: set[str] = field(default_factory=set)
    _reported: set[str] = field(default_factory=set)
    _all_reported: bool = False
    """Whether it has reported everything."""

    def __post_init__(self) -> None:
        self._tracker = FileTracker(
            self._on_dirty, self._on_overflow, lambda text: self._notify("warning", text)
        )

    def follow(self) -> None:
        """Tracks what the session has met since the last time."""
        entries = self._objects.index.entries
        read = [n for n, listed in self._listed.items() if entries[n].newest.content_hash != listed]
        for ordinal in (*read, *range(self._looked_at + 1, len(entries) + 1)):
            self._listed.pop(ordinal, None)
            if entries[ordinal].type == "file":
                self._follow(entries[ordinal])
        self._looked_at = len(entries)

    def differing(self) -> list[str]:
        """Files in view that may have changed."""
        files = files_in_view(self._objects, self._chat.branch)
        if self._all_reported:
            return files
        # The tracker first: what it reports meanwhile is among what it has reported.
        return list(dict.fromkeys([*self._tracker.differing(files), *sorted(self._reported)]))

    def remind(self) -> None:
        """Looks again shortly at files that were being written."""
        if self._inbox.being_written:
            self._tracker.remind(self._inbox.being_written)

    def hold(self, call_id: str, event: ToolEvent) -> None:
        """Holds back changes of a tool's files until it ends."""
        # Otherwise the watcher could see them first, and they would count as another program's.
        targets = [t.path for t in touched_paths(event, limit=1) if t.role == "written"]
        places = [self._filesystems.locate(path, event.cwd or None) for path in targets]
        if names := {n for place in places if place.local for n in (place.local, place.object_id)}:
            self._held[call_id] = names

    def hold_all(self, call_id: str) -> None:
        """Holds back all changes until a tool ends."""
        self._held[call_id] = None

    def postpone(self, files: Iterable[str]) -> None:
        """Looks at files when a tool ends."""
        self._waiting.update(files)

    def release(self, call_id: str | None = None) -> None:
        if call_id is None:
            self._held.clear()
        else:
            self._held.pop(call_id, None)
        waiting, self._waiting = self._waiting, set()
        if waiting:
            self._look(waiting)

    def stop(self) -> None:
        """Ends all tracking; waits for the threads."""
        self._tracker.stop()

    def _on_dirty(self, paths: set[str]) -> None:
        # On the tracker's thread, and at once: a prompt that is assembled before the engine's
        # thread comes to `_look` asks for these, too (`differing`).
        self._reported.update(paths)
        self._call_soon(lambda: self._look(paths))

    def _look(self, paths: set[str]) -> None:
        self._reported.difference_update(paths)
        held = set().union(*(names for names in self._held.values() if names))
        held_back = paths if None in self._held.values() else paths & held
        # Looked at when the tool has ended: by then its result has made them known.
        self._waiting |= held_back
        if held_back and self._saw_held is not None:
            self._saw_held(sorted(held_back))
        if paths - held_back:
            self._reconcile(sorted(paths - held_back))

    def _on_overflow(self) -> None:
        # The system has dropped events: any file may have changed.
        self._all_reported = True
        self._call_soon(self._look_at_all)

    def _look_at_all(self) -> None:
        self._all_reported = False
        self._reconcile(None)

    def _follow(self, entry: Entry) -> None:
        head = self._objects.store.head(entry.object)
        if head is None:
            return
        if is_unread(head.fields):
            # It was only listed: the model has seen nothing of it.
            self._listed[entry.ordinal] = entry.newest.content_hash
            return
        source = filesystem_source(head.fields)
        local = None if source is None else self._filesystems.local_path(source)
        if local is not None:
            self._tracker.track(entry.object, local)
