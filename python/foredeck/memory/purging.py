"""Entries out of everything that is stored, as if there had never been any."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import cast

from foredeck.memory.entry import MemoryEntry
from foredeck.memory.reading import MemoryReader
from foredeck.memory.rendering import line_of
from foredeck.memory.user import User
from foredeck.model.documents import Document
from foredeck.model.memory import MemoryDocument
from foredeck.store.protocol import Store
from foredeck.store.purging import Amend

SHORTEST_TEXT = 6
"""Characters of a text that is searched for literally: a shorter one is a part of many words."""


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


def lines_in_prompts(store: Store, entries: Iterable[MemoryEntry]) -> Iterator[str]:
    """The lines that entries have had in prompts, in all their versions."""
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
