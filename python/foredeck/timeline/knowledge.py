"""What the agent knows of files, and which files change while one of its tools runs."""

from __future__ import annotations

from typing import NamedTuple

from foredeck.context.state.objects import Objects
from foredeck.context.state.request import Inbox
from foredeck.model.documents import FileDocument, chat_id
from foredeck.model.identity import hash_text
from foredeck.model.sources import filesystem_source
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.looking import Fingerprint, fingerprint_at, look
from foredeck.sources.snapshots import FileSnapshot, is_captured, tool_call_of

UNKNOWN_HASH = "unknown"
"""In place of a hash: the file changed while being read."""


class KnownState(NamedTuple):
    """A file's known bytes, by hash; None: known to be absent."""

    source_hash: str | None
    text: str | None = None


class Knowledge:
    """Knowledge by object, after a restart from the session's index."""

    def __init__(self, objects: Objects, inbox: Inbox) -> None:
        self._objects = objects
        self._inbox = inbox
        self._known: dict[str, KnownState] = {}
        self.stale: set[str] = set()
        """Files changed by something else since the agent last saw them."""

    def learn(self, object_id: str, state: KnownState) -> None:
        """The agent has read, made or been shown this."""
        # The store keeps texts; a long session must not hold all of them in memory.
        head = self._objects.store.head(object_id)
        is_stored = head is not None and head.fields.get("source_hash") == state.source_hash
        keeps = state.source_hash in (None, UNKNOWN_HASH) or not is_stored
        self.stale.discard(object_id)
        self._known[object_id] = state if keeps else KnownState(state.source_hash)
        ordinal = self._objects.index.by_object.get(object_id)
        if ordinal is not None:
            self._inbox.known_texts.pop(ordinal, None)

    def of(self, object_id: str) -> KnownState | None:
        """What the agent knows of a file; None if it has never seen it."""
        if (state := self._known.get(object_id)) is not None:
            return state
        ordinal = self._objects.index.by_object.get(object_id)
        if ordinal is None:
            return None
        entry = self._objects.index.entries[ordinal]
        text_hash = self._inbox.known_texts.get(ordinal) or entry.newest.text_hash
        return None if text_hash is None else KnownState(text_hash)

    def recall(self, object_id: str) -> None:
        store = self._objects.store
        for version in reversed(store.history(object_id) if self.of(object_id) is None else ()):
            call = tool_call_of(version) if is_captured(version.fields) else None
            head = None if call is None else store.head(call)
            if head is not None and head.fields.get("chat_ref") == chat_id(self._objects.info.id):
                self.learn(object_id, KnownState(version.fields.get("source_hash")))
                break

    def is_current(self, object_id: str) -> bool:
        """Whether the newest stored version is what the agent knows."""
        state, head = self.of(object_id), self._objects.store.head(object_id)
        if state is None or head is None:
            return True
        return state.source_hash == head.fields.get("source_hash")

    def text_of(self, object_id: str, known: KnownState) -> str | None:
        """A known state's text, from memory or store."""
        if known.text is not None or known.source_hash in (None, UNKNOWN_HASH):
            return known.text
        head = self._objects.store.head(object_id)
        if head is None:
            return None
        if head.fields.get("source_hash") != known.source_hash:
            older = reversed(self._objects.store.history(object_id))
            head = next(
                (h for h in older if h.fields.get("source_hash") == known.source_hash), None
            )
        document = (
            None if head is None else self._objects.store.get(object_id, FileDocument, head.token)
        )
        return None if document is None else document.content


def state_of(snapshot: FileSnapshot) -> KnownState | None:
    if snapshot.state in ("deleted", "missing"):
        return KnownState(None)
    document, text = snapshot.document, None
    if document is not None:
        source_hash, text = document.source_hash, document.content
    elif snapshot.head is not None and snapshot.state in ("text", "binary", "huge"):
        source_hash = snapshot.head.fields.get("source_hash")
    else:
        return None
    # A huge file may have no hash: nothing tells its states apart for certain.
    return None if source_hash is None else KnownState(source_hash, text)


def state_of_text(text: str) -> KnownState:
    return KnownState(hash_text(text), text)


MAX_FILES = 500
"""Newest handles first; some 5 ms."""
COMPARED_BYTES = 2 * 1024 * 1024


class ToolWindows:
    """Time stamps of files when each running tool began."""

    def __init__(self, objects: Objects, filesystems: FilesystemMap) -> None:
        self._objects = objects
        self._filesystems = filesystems
        self._paths: dict[int, str | None] = {}
        self._stamps: dict[str, Fingerprint | None] = {}
        """The file as the engine has last read it, by local path."""
        self._began: dict[str, dict[str, Fingerprint | None]] = {}

    def note_look(self, local: str) -> None:
        """Notes a look at a file."""
        # Popped, so that it comes last: the newest files are the ones that are checked.
        self._stamps.pop(local, None)
        self._stamps[local] = fingerprint_at(local)

    def is_unchanged(self, local: str) -> bool:
        """Whether the file is untouched since the last look."""
        return local in self._stamps and fingerprint_at(local) == self._stamps[local]

    def suspects(self) -> list[str]:
        return [path for path in self.known() if not self.is_unchanged(path)]

    def begin(self, call_id: str) -> None:
        self._began[call_id] = dict(self._stamps)

    def begin_late(self, call_id: str) -> None:
        """Begins a tool that an earlier engine saw begin: changes since then are its own."""
        self._began[call_id] = {path: self._stamp_as_stored(path) for path in self.known()}

    def _stamp_as_stored(self, local: str) -> Fingerprint | None:
        """The file's time stamp, if the newest version is what it holds."""
        stamp, seen = fingerprint_at(local), look(local, COMPARED_BYTES)
        head = self._objects.workspace.head(self._filesystems.locate_local(local).object_id)
        is_stored = head is not None and head.fields.get("source_hash") == seen.source_hash
        return stamp if is_stored else None

    def end(self, call_id: str) -> list[str]:
        """Files changed while the tool ran; empty if `begin` was not called."""
        began = self._began.pop(call_id, None) or {}
        return [path for path, before in began.items() if fingerprint_at(path) != before]

    def forget(self) -> None:
        """Forgets all tools."""
        self._began.clear()

    def known(self) -> list[str]:
        """Local paths of the session's files, newest first, up to `MAX_FILES`."""
        entries = self._objects.index.entries
        # What was looked at may not have joined the index yet.
        paths = dict.fromkeys(reversed(self._stamps))
        for ordinal in range(len(entries), 0, -1):
            if len(paths) >= MAX_FILES:
                break
            entry = entries[ordinal]
            if entry.type != "file" or entry.newest.text_hash is None:
                continue
            if (path := self._local(ordinal)) is not None:
                paths.setdefault(path)
        return list(paths)[:MAX_FILES]

    def _local(self, ordinal: int) -> str | None:
        if ordinal not in self._paths:
            head = self._objects.workspace.head(self._objects.index.entries[ordinal].object)
            source = None if head is None else filesystem_source(head.fields)
            self._paths[ordinal] = None if source is None else self._filesystems.local_path(source)
        return self._paths[ordinal]
