"""What the agent knows each file to hold: what it has read or written, and the notices it got."""

from __future__ import annotations

from dataclasses import dataclass

from foredeck.context.state.chat import Chat
from foredeck.context.state.inbox import Inbox
from foredeck.context.state.index import Entry
from foredeck.context.state.objects import Objects
from foredeck.model.canonical import hash_text
from foredeck.model.documents import FileDocument, chat_id
from foredeck.sources.snapshots import FileSnapshot, is_captured, tool_call_of

UNKNOWN_HASH = "unknown"
"""In place of a hash: the file was saved while it was being read, so what the agent read is not
known."""


@dataclass(frozen=True, slots=True)
class KnownState:
    """The bytes that the agent knows a file to have, by their hash, and their text where it is at
    hand. None for `source_hash`: the agent knows that there is no file."""

    source_hash: str | None
    text: str | None = None


class Knowledge:
    """What is known, by object: in memory while the engine runs; after a restart, what the
    session's index says."""

    def __init__(self, objects: Objects, chat: Chat, inbox: Inbox) -> None:
        self._objects = objects
        self._chat = chat
        self._inbox = inbox
        self._known: dict[str, KnownState] = {}
        self.stale: set[str] = set()
        """Files that something else has changed since the agent last saw them, as far as noticed:
        what its tools make of those on top is not all its own."""

    def learn(self, object_id: str, state: KnownState) -> None:
        """The agent has read this, made it, or been shown it."""
        # The store keeps texts; a long session must not hold all of them in memory.
        keeps = state.source_hash in (None, UNKNOWN_HASH) or not self._is_stored(object_id, state)
        self.stale.discard(object_id)
        self._known[object_id] = state if keeps else KnownState(state.source_hash)
        ordinal = self._objects.index.by_object.get(object_id)
        if ordinal is not None:
            self._inbox.known_texts.catch_up(ordinal)

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

    def is_shown(self, entry: Entry) -> bool:
        """Whether the model can read the newest version of a file in its prompt."""
        plan = self._chat.branch.plan
        index = plan.newest_holder(entry.ordinal)
        return index is not None and plan.ops[index].version == entry.newest.version

    def _is_stored(self, object_id: str, state: KnownState) -> bool:
        head = self._objects.store.head(object_id)
        return head is not None and head.fields.get("source_hash") == state.source_hash


def state_of(snapshot: FileSnapshot) -> KnownState | None:
    """What a look found; None where it says nothing of the bytes."""
    fields = None if snapshot.head is None else snapshot.head.fields
    if snapshot.document is not None:
        if snapshot.state == "deleted":
            return KnownState(None)
        return _state(snapshot.document.source_hash, snapshot.document.content)
    if snapshot.state in ("deleted", "missing"):
        return KnownState(None)
    if fields is None or snapshot.state not in ("text", "binary", "huge"):
        return None
    return _state(fields.get("source_hash"), None)


def _state(source_hash: str | None, text: str | None) -> KnownState | None:
    # A huge file may have no hash: nothing tells its states apart for certain.
    return None if source_hash is None else KnownState(source_hash, text)


def state_of_text(text: str) -> KnownState:
    """A file that holds exactly this text."""
    return KnownState(hash_text(text), text)
