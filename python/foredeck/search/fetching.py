"""What texts are made of, for many versions at once: a store is asked twice for a hundred, not
once for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from foredeck.errors import Missing
from foredeck.model.canonical import decode_text
from foredeck.model.documents import ToolcallDocument
from foredeck.model.kinds import kind_of
from foredeck.model.messages import load_message, marked
from foredeck.model.records import TurnDocument, messages_of_turn
from foredeck.sources.versions import version_ms
from foredeck.store.protocol import Head, Store
from foredeck.store.references import in_message, stored_messages


def time_of(message: Mapping[str, Any], stored_ms: int) -> int:
    """When a message was written, by its host, else when it was stored."""
    time = message.get("timestamp")
    return int(time) if isinstance(time, int | float) and not isinstance(time, bool) else stored_ms


class Fetched:
    """The blobs and contents that the texts of some versions are made of."""

    def __init__(self, store: Store, heads: Iterable[Head]) -> None:
        self._store = store
        messages: set[str] = set()
        wanted: set[str] = set()
        heads = list(heads)
        self._turns = self._turns_of(heads)
        messages.update(str(turn.view(TurnDocument).assistant) for turn in self._turns.values())
        for head in heads:
            fields = head.fields
            if head.type == "turn":
                messages.update(messages_of_turn(fields))
            elif fields.get("text_hash"):
                wanted.add(fields["text_hash"])
            if head.type == "toolcall":
                wanted.update(marked([fields.get("args"), fields.get("details")]))
        self._blobs = stored_messages(store, messages | wanted)
        inner = set[str]().union(*(in_message(self._blobs.get(address)) for address in messages))
        self._blobs |= store.blobs(inner - self._blobs.keys())

    def _turns_of(self, heads: Iterable[Head]) -> dict[str, Head]:
        """By the id of a tool call: its turn, where that came in the same transaction.

        One that came later is not looked at: what is indexed must not depend on when.
        """
        calls = [head for head in heads if head.fields.get("turn_ref")]
        newest = self._store.heads({str(call.view(ToolcallDocument).turn_ref) for call in calls})
        found = {}
        for call in calls:
            turn = newest.get(str(call.view(ToolcallDocument).turn_ref))
            if turn is not None and turn.token != call.token:
                turn = self._store.head(turn.id, call.token)
            if turn is not None and turn.token == call.token and turn.fields.get("assistant"):
                found[call.id] = turn
        return found

    def asked_ms(self, head: Head) -> int:
        """When a tool call was asked for, by its host, else when its result came: a history that is
        read in brings calls of long ago. Raises `Missing`."""
        turn = self._turns.get(head.id)
        if turn is None or turn.token != head.token:
            return version_ms(head)
        message = load_message(str(turn.view(TurnDocument).assistant), self.blob)
        return time_of(message, version_ms(head))

    def blob(self, digest: str) -> bytes:
        """The bytes with this hash. Raises `Missing`."""
        if digest not in self._blobs:
            raise Missing(f"no blob {digest} in this store")
        return self._blobs[digest]

    def content(self, head: Head) -> str:
        """The content of a version, empty for none. Raises `Missing`."""
        digest = head.fields.get("text_hash")
        if digest is None:
            return ""
        if digest in self._blobs:
            return decode_text(self._blobs[digest])
        # Short contents are kept within the version.
        document = self._store.get(head.id, kind_of(head.type), head.token)
        return "" if document is None else document.content or ""
