"""What a fork takes over of its parent's memory: what the parent knew where the fork left it.

The fork has entries of its own from then on, so that neither changes the other's; what the user
deletes in the parent goes in its forks, too, since theirs was made from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from foredeck.memory.entry import MemoryEntry, mint_id
from foredeck.memory.reading import MemoryReader
from foredeck.memory.trust import renewed_word
from foredeck.model.documents import Provenance
from foredeck.model.memory import MemoryDocument, is_kept_with
from foredeck.store.protocol import Head

INHERITED = "inherited"
"""The act that makes them."""


def inherited_memory(
    reader: MemoryReader, parent: str, session: str, path: Collection[str], now_ms: int
) -> list[MemoryDocument]:
    """Entries for `session`, a fork of `parent`, as new documents, the oldest first; what it has
    already is not among them. Each is trusted as far as what it was made from.

    `path`: addresses of the messages that the fork's chat begins with. What was learned from a
    turn that is not among them was not known there; what was learned from none is taken along.
    """
    store = reader.store
    known = _known_at(reader, parent, path)
    own = store.query("memory", {"session": session})
    taken = {ref for head in own for ref in head.view(MemoryDocument).provenance.parent_refs}
    renew = renewed_word(reader.user)
    made = []
    for number, entry in enumerate(sorted(known, key=lambda entry: entry.age)):
        if entry.id in taken:
            continue
        # The order of those that were learned at the same time is that of their ids.
        document = entry.document.model_copy(
            update={
                **{"id": mint_id(now_ms + number), "session": session, "act": INHERITED},
                **{"state": "kept", "superseded_by": None, "vouched": None},
                "provenance": Provenance(origin=parent, parent_refs=[entry.id], generator="system"),
            }
        )
        renew(entry.document, document)
        made.append(document.seal())
    return made


def _known_at(reader: MemoryReader, parent: str, path: Collection[str]) -> list[MemoryEntry]:
    """What a session knew there, by the newest word on it."""
    entries = {head.id: reader.entry_of(head) for head in _entries_of(reader, parent)}
    turns = reader.store.heads(entry.document.turn or "" for entry in entries.values())

    def was_known(id: str | None) -> bool:
        if id is None or id not in entries:
            return False
        turn = entries[id].document.turn
        return turn is None or (turn in turns and turns[turn].fields.get("assistant") in path)

    found = []
    for entry in entries.values():
        document = entry.document
        later = document.state == "superseded" and not was_known(document.superseded_by)
        if was_known(entry.id) and (document.state == "kept" or later):
            found.append(entry)
    return found


def _entries_of(reader: MemoryReader, session: str) -> Iterator[Head]:
    for head in reader.store.query("memory", {"session": session}):
        if is_kept_with(head.fields):
            yield head
