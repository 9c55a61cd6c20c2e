"""Entries out of everything that is stored, as if there had never been any."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import cast

from foredeck.errors import StoreError
from foredeck.memory.entry import MemoryEntry
from foredeck.memory.reading import MemoryReader
from foredeck.memory.rendering import line_of
from foredeck.memory.user import User
from foredeck.model.documents import Document
from foredeck.model.kinds import kind_of
from foredeck.model.memory import MemoryDocument
from foredeck.model.messages import load_message
from foredeck.store.protocol import Head, Store
from foredeck.store.purging import Amend
from foredeck.store.redaction import literal_patterns

SHORTEST_TEXT = 6
"""Characters of a text that is looked for as it stands: a shorter one is a part of many words."""


SHORTEST_NOTE = 12
"""Characters of a text of an observation, below which it says nothing of where it came from."""

LONG_NOTE = 30
"""From this length on it is looked for inside other texts, too, such as prompts."""


def family_of(memory: MemoryReader, id: str) -> list[MemoryEntry]:
    """An entry, if there is one of this id, and all that was made from what has the id, in
    whatever state."""
    entry = memory.get(id)
    return [*([] if entry is None else [entry]), *memory.descendants(id)]


def said_by_tool(memory: MemoryReader, turn: str | None) -> list[MemoryEntry]:
    """The entries that were read out of a turn and say what a tool had said, with all that was
    made from those."""
    found = [] if turn is None else memory.descendants(turn)
    said = [entry for entry in found if entry.document.tool_originated]
    return [each for entry in said for each in family_of(memory, entry.id)]


def noted_of(store: Store, result: Head) -> list[Head]:
    """What was noted of messages among which the result of a tool call stands, with what was made
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

    found = [
        head
        for head in store.query("observation")
        if any(holds(address) for address in head.fields["covers"])
    ]
    ids = {head.id for head in found}
    behind = store.query("reflection")
    return [*found, *(head for head in behind if ids & {*head.fields["observations"]})]


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


def lines_in_prompts(store: Store, entries: Iterable[MemoryEntry]) -> list[re.Pattern[str]]:
    """What finds the lines that entries have had in prompts, in all their versions."""
    return literal_patterns(sorted(set(_lines(store, entries)), key=len, reverse=True))


def _lines(store: Store, entries: Iterable[MemoryEntry]) -> Iterator[str]:
    for entry in entries:
        for version in store.history(entry.id):
            document = MemoryDocument.model_validate(dict(version.fields))
            for trust in ("user-stated", "derived"):
                yield line_of(MemoryEntry(document, version.token, trust))


def vouch_again(user: User) -> Amend:
    """An entry that loses a text stays its user's word: they have asked for that."""

    def amend(before: Document, after: Document) -> None:
        if before.type == "memory":
            old, new = cast(MemoryDocument, before), cast(MemoryDocument, after)
            if user.vouches(old.statement(), old.vouched):
                new.vouched = user.vouch(new.statement())

    return amend


def ids_of(entries: Iterable[MemoryEntry]) -> Collection[str]:
    """The ids of entries, each once."""
    return {entry.id for entry in entries}
