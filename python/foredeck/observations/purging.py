"""What was noted of content that is to leave the store for good."""

from __future__ import annotations

from collections.abc import Iterable

from foredeck.errors import StoreError
from foredeck.model.kinds import kind_of
from foredeck.model.messages import load_message
from foredeck.observations.reading import notes_about
from foredeck.store.protocol import Head, Store

SHORTEST_NOTE = 12
"""Characters of a text of an observation, below which it says nothing of where it came from."""

LONG_NOTE = 30
"""From this length on other texts are searched for it, too, such as prompts."""


def noted_of(store: Store, result: Head) -> list[Head]:
    """What was noted of messages that include the result of a tool call, with what was made
    of that in turn: observations and reflections."""
    call = result.fields.get("provider_call_id") or result.id
    asked: dict[str, bool] = {}

    def holds(address: str) -> bool:
        if address not in asked:
            try:
                asked[address] = load_message(address, store.blob).get("toolCallId") == call
            except (StoreError, ValueError, TypeError):
                asked[address] = False
        return asked[address]

    return notes_about(store, holds)


def texts_noted(store: Store, notes: Iterable[Head]) -> list[str]:
    """The texts of observations and reflections in all their versions, the longest first."""
    found: set[str] = set()
    for note in notes:
        for version in store.history(note.id):
            fields = version.fields
            document = store.get(note.id, kind_of(note.type), version.token)
            found.add((document.content if document else None) or "")
            found.update(remark["content"] for remark in fields.get("remarks") or ())
            found.update((fields.get("current_task") or "", fields.get("suggestion") or ""))
    return sorted((text for text in found if len(text) >= SHORTEST_NOTE), key=len, reverse=True)
