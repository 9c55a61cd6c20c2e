"""Which files change while one of the agent's tools runs, since those changes are its own."""

from __future__ import annotations

from foredeck.context.state.objects import Objects
from foredeck.model.sources import filesystem_source
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.looking import Fingerprint, fingerprint_at

MAX_FILES = 500
"""How many files are checked, those with the newest handles: that takes some 5 ms."""


class ToolWindows:
    """Files as they were when each running tool began, by their time stamps: a command does not say
    what it writes."""

    def __init__(self, objects: Objects, filesystems: FilesystemMap) -> None:
        self._objects = objects
        self._filesystems = filesystems
        self._paths: dict[int, str | None] = {}
        self._stamps: dict[str, Fingerprint | None] = {}
        """By local path: the file as the engine has last read it."""
        self._began: dict[str, dict[str, Fingerprint | None]] = {}

    def note_look(self, local: str) -> None:
        """The engine knows what the file holds now."""
        # Popped, so that it comes last: the newest files are the ones that are checked.
        self._stamps.pop(local, None)
        self._stamps[local] = fingerprint_at(local)

    def is_unchanged(self, local: str) -> bool:
        """Whether nothing has touched the file since the engine's last look."""
        return local in self._stamps and fingerprint_at(local) == self._stamps[local]

    def suspects(self) -> list[str]:
        """Files that have changed since the last look, or have not been read yet."""
        return [path for path in self.known() if not self.is_unchanged(path)]

    def begin(self, call_id: str) -> None:
        """A tool is about to run. What has changed before must have been read by now."""
        self._began[call_id] = dict(self._stamps)

    def end(self, call_id: str) -> list[str]:
        """The files that have changed while the tool ran."""
        began = self._began.pop(call_id, None) or {}
        return [path for path, before in began.items() if fingerprint_at(path) != before]

    def forget(self) -> None:
        """No tool runs."""
        self._began.clear()

    def known(self) -> list[str]:
        """Local paths of the files that the session has met, the newest first; `MAX_FILES` of
        them."""
        entries = self._objects.index.entries
        # What was looked at may not have joined the index yet.
        found = dict.fromkeys(reversed(self._stamps))
        for ordinal in range(len(entries), 0, -1):
            if len(found) >= MAX_FILES:
                break
            entry = entries[ordinal]
            if entry.type != "file" or entry.newest.text_hash is None:
                continue
            if (path := self._local(ordinal)) is not None:
                found.setdefault(path)
        return list(found)[:MAX_FILES]

    def _local(self, ordinal: int) -> str | None:
        if ordinal not in self._paths:
            head = self._objects.workspace.head(self._objects.index.entries[ordinal].object)
            source = None if head is None else filesystem_source(head.fields)
            self._paths[ordinal] = None if source is None else self._filesystems.local_path(source)
        return self._paths[ordinal]
