"""Following the files that a session has met, between its requests.

The tracker's threads only report changes; all work is done on the engine's own thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from foredeck.context.intake.file_changes import parts_in_view
from foredeck.context.state.chat import Chat
from foredeck.context.state.inbox import Inbox
from foredeck.context.state.index import Entry
from foredeck.context.state.objects import Objects
from foredeck.hosts.host import CallSoon
from foredeck.model.sources import filesystem_source
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.snapshots import ToolEvent, is_unread
from foredeck.sources.tool_calls import touched_paths
from foredeck.sources.tracking import FileTracker

Reconcile = Callable[[Iterable[str] | None], None]
"""Looks at files that may have changed: those named, or all that the session has met."""


class NoWatch:
    """In place of a `SessionWatch` where nothing is watched: changes are found when asked for."""

    def follow(self) -> None:
        """See `SessionWatch`."""

    def differing(self) -> list[str]:
        """See `SessionWatch`."""
        return []

    def remind(self) -> None:
        """See `SessionWatch`."""

    def hold(self, call_id: str, event: ToolEvent) -> None:
        """See `SessionWatch`."""

    def hold_all(self, call_id: str) -> None:
        """See `SessionWatch`."""

    def release(self, call_id: str | None = None) -> None:
        """See `SessionWatch`."""

    def stop(self) -> None:
        """See `SessionWatch`."""


class SessionWatch:
    """Tracks one session's files, and asks for those to be reconciled that have changed."""

    def __init__(
        self,
        objects: Objects,
        chat: Chat,
        inbox: Inbox,
        filesystems: FilesystemMap,
        *,
        call_soon: CallSoon,
        reconcile: Reconcile,
        notify: Callable[[str, str], None],
        saw_held: Callable[[Iterable[str]], None] | None = None,
    ) -> None:
        """`saw_held`: called with files that change while a tool writes to them."""
        self._objects = objects
        self._chat = chat
        self._inbox = inbox
        self._filesystems = filesystems
        self._call_soon = call_soon
        self._reconcile = reconcile
        self._saw_held = saw_held
        self._looked_at = 0
        self._listed: dict[int, str] = {}
        """Content hashes of files that are not followed yet, since they were never read."""
        self._held: dict[str, set[str] | None] = {}
        """By call: the files that it may write, None for all."""
        self._waiting: set[str] = set()
        self._reported: set[str] = set()
        """Paths that the tracker has reported, and that were not read since."""
        self._all_reported = False
        """Whether it has reported everything."""
        self._tracker = FileTracker(
            self._on_dirty, self._on_overflow, lambda text: notify("warning", text)
        )

    def follow(self) -> None:
        """Track what the session has met since the last time."""
        entries = self._objects.index.entries
        read = [n for n, listed in self._listed.items() if entries[n].newest.content_hash != listed]
        for ordinal in (*read, *range(self._looked_at + 1, len(entries) + 1)):
            self._listed.pop(ordinal, None)
            if entries[ordinal].type == "file":
                self._follow(entries[ordinal])
        self._looked_at = len(entries)

    def differing(self) -> list[str]:
        """Files that the model sees and that may have changed."""
        entries = self._objects.index.entries
        holders = self._chat.branch.plan.holders
        files = [entries[n].object for n in sorted(holders) if entries[n].type == "file"]
        files += sorted(parts_in_view(self._objects, self._chat.branch))
        if self._all_reported:
            return files
        # The tracker first: what it reports meanwhile is among what it has reported.
        return list(dict.fromkeys([*self._tracker.differing(files), *sorted(self._reported)]))

    def remind(self) -> None:
        """Look again in a moment at files that were being written at the last look."""
        if self._inbox.being_written:
            self._tracker.remind(self._inbox.being_written)

    def hold(self, call_id: str, event: ToolEvent) -> None:
        """A tool is about to write: leave changes of its files until its end."""
        # Otherwise the watcher could see them first, and they would count as another program's.
        written = [t.path for t in touched_paths(event, limit=1) if t.role == "written"]
        places = [self._filesystems.locate(path, event.cwd or None) for path in written]
        if names := {n for place in places if place.local for n in (place.local, place.object_id)}:
            self._held[call_id] = names

    def hold_all(self, call_id: str) -> None:
        """A tool is about to run that may write any file: leave all changes until its end."""
        self._held[call_id] = None

    def release(self, call_id: str | None = None) -> None:
        """The tool has ended, or all have: look at the changes that were held back."""
        if call_id is None:
            self._held.clear()
        else:
            self._held.pop(call_id, None)
        waiting, self._waiting = self._waiting, set()
        if waiting:
            self._look(waiting)

    def stop(self) -> None:
        """End all tracking; waits for the threads."""
        self._tracker.stop()

    def _on_dirty(self, paths: set[str]) -> None:
        # On the tracker's thread, and at once: a prompt that is assembled before the engine's
        # thread comes to `_look` asks for these, too (`differing`).
        self._reported.update(paths)
        self._call_soon(lambda: self._look(paths))

    def _look(self, paths: set[str]) -> None:
        self._reported.difference_update(paths)
        held = paths if None in self._held.values() else self._held_among(paths)
        # Looked at when the tool has ended: by then its result has made them known.
        self._waiting |= held
        if held and self._saw_held is not None:
            self._saw_held(sorted(held))
        if paths - held:
            self._reconcile(sorted(paths - held))

    def _held_among(self, paths: set[str]) -> set[str]:
        return paths & set().union(*(names for names in self._held.values() if names))

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
