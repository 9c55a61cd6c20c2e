"""How much of what is kept of a user is junk: says what another entry says, or is never of use."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from foredeck.memory.entry import MemoryEntry, MemoryReader
from foredeck.memory.words import KnownFact, compare
from foredeck.model.documents import SessionDocument
from foredeck.model.records import call_id

UNUSED_SESSIONS = 50
"""An entry that was of no use in this many sessions is junk."""


@dataclass(frozen=True, slots=True)
class Junk:
    """What of the kept entries is junk, by id; an entry is in one list only."""

    kept: int
    duplicates: tuple[str, ...]
    unused: tuple[str, ...]

    @property
    def rate(self) -> float:
        """Part of the kept entries that is junk, from 0 to 1."""
        return (len(self.duplicates) + len(self.unused)) / self.kept if self.kept else 0.0


def junk_among(entries: Sequence[MemoryEntry], begun_ms: Sequence[int]) -> Junk:
    """`begun_ms`: when sessions began, the oldest first."""
    known: list[KnownFact] = []
    duplicates, unused = [], []
    for entry in sorted(entries, key=lambda entry: entry.age):
        document = entry.document
        since = len(begun_ms) - bisect_right(begun_ms, document.used_ms)
        if compare(document.fact, known).same is not None:
            duplicates.append(entry.id)
        elif since >= UNUSED_SESSIONS:
            unused.append(entry.id)
        known.append(KnownFact(entry.id, document.fact))
    return Junk(len(entries), tuple(duplicates), tuple(unused))


def junk_of(memory: MemoryReader) -> Junk:
    """Of what is kept of the user."""
    return junk_among(memory.of_user(), _sessions_begun(memory))


def _sessions_begun(memory: MemoryReader) -> list[int]:
    # By its first call, which is never written again; a session without one has used nothing.
    sessions = (head.view(SessionDocument).session_id for head in memory.store.query("session"))
    first = memory.store.heads(call_id(session, 1) for session in sessions)
    return sorted(head.time_ms for head in first.values())
