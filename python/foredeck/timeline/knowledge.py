"""What the agent knows each file to hold: what it has read or written, and the notices it got. And
which files change while one of its tools runs, since those changes are its own."""

from __future__ import annotations

from typing import NamedTuple

from foredeck.context.state.inbox import Inbox
from foredeck.context.state.objects import Objects
from foredeck.model.canonical import hash_text
from foredeck.model.documents import FileDocument, chat_id
from foredeck.model.sources import filesystem_source
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.looking import Fingerprint, fingerprint_at
from foredeck.sources.snapshots import FileSnapshot, is_captured, tool_call_of

UNKNOWN_HASH = "unknown"
"""In place of a hash: the file was saved while it was being read, so what the agent read is not
known."""


class KnownState(NamedTuple):
    """The bytes that the agent knows a file to have, by their hash, and their text where it is at
    hand. None for `source_hash`: the agent knows that there is no file."""

    source_hash: str | None
    text: str | None = None


class Knowledge:
    """What is known, by object: in memory while the engine runs; after a restart, what the
    session's index says."""

    def __init__(self, objects: Objects, inbox: Inbox) -> None:
        self._objects = objects
        self._inbox = inbox
        self._known: dict[str, KnownState] = {}
        self.stale: set[str] = set()
        """Files that something else has changed since the agent last saw them, as far as noticed:
        what its tools make of those on top is not all its own."""

    def learn(self, object_id: str, state: KnownState) -> None:
        """The agent has read this, made it, or been shown it."""
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
        """What the agent knows of a file; None for one that it has never seen."""
        if (known := self._known.get(object_id)) is not None:
            return known
        ordinal = self._objects.index.by_object.get(object_id)
        if ordinal is None:
            return None
        entry = self._objects.index.entries[ordinal]
        text_hash = self._inbox.known_texts.get(ordinal) or entry.newest.text_hash
        return None if text_hash is None else KnownState(text_hash)

    def recall(self, object_id: str) -> None:
        """Of a file that no tool has shown, the agent knows what its own commands have last made.
        To be called before the file is read."""
        store = self._objects.store
        for version in reversed(store.history(object_id) if self.of(object_id) is None else ()):
            call = tool_call_of(version) if is_captured(version.fields) else None
            head = None if call is None else store.head(call)
            if head is not None and head.fields.get("chat_ref") == chat_id(self._objects.info.id):
                self.learn(object_id, KnownState(version.fields.get("source_hash")))
                break

    def is_current(self, object_id: str) -> bool:
        """Whether the newest stored version is what the agent knows, if it knows the file."""
        known, head = self.of(object_id), self._objects.store.head(object_id)
        if known is None or head is None:
            return True
        return known.source_hash == head.fields.get("source_hash")

    def text_of(self, object_id: str, known: KnownState) -> str | None:
        """The text of a known state, from memory or the store; None where it has none."""
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
    """What a look found; None where it says nothing of the bytes."""
    if snapshot.state in ("deleted", "missing"):
        return KnownState(None)
    found, text = snapshot.document, None
    if found is not None:
        source_hash, text = found.source_hash, found.content
    elif snapshot.head is not None and snapshot.state in ("text", "binary", "huge"):
        source_hash = snapshot.head.fields.get("source_hash")
    else:
        return None
    # A huge file may have no hash: nothing tells its states apart for certain.
    return None if source_hash is None else KnownState(source_hash, text)


def state_of_text(text: str) -> KnownState:
    """A file that holds exactly this text."""
    return KnownState(hash_text(text), text)


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
        """The files that have changed while the tool ran; none for one of which `begin` was not
        told."""
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
