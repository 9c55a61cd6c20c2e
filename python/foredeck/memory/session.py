"""Memory as one session sees it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from foredeck.memory.entry import MemoryEntry
from foredeck.memory.ground import GroundReader
from foredeck.memory.keeping import Memory
from foredeck.memory.sections import FINDINGS, OF_SESSION, OF_USER, EntriesSection
from foredeck.model.memory import MemoryDocument, Place
from foredeck.store.protocol import Token

_UNCOMMITTED = Token("")


class Inheritance(Protocol):
    """What a fork takes over of its parent's memory, once."""

    def take_over(self) -> None:
        """Put it into the transaction of the call that is under way."""
        ...

    def uncommitted(self) -> Iterable[MemoryDocument]:
        """What of it that transaction holds."""
        ...


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """What is kept of the user, as far as it holds in `project`, and of the session itself.

    inheritance  of a fork that has made no call when it is opened
    about        gives the words that the project's files are about
    searched     whether the model has `memory-search`
    """

    session: str
    project: str
    memory: Memory
    ground: GroundReader
    inheritance: Inheritance | None = None
    about: Callable[[], Collection[str]] = frozenset
    searched: bool = True

    def of_user(self) -> EntriesSection:
        """What is kept of the user, in the head."""
        return self._section(OF_USER, partial(self.memory.of_user, self.project), has_floor=True)

    def of_session(self) -> EntriesSection:
        """What is kept of the session, in the head."""
        return self._section(OF_SESSION, partial(self._kept, "session"))

    def findings(self) -> EntriesSection:
        """What was found in its data, in the head."""
        return self._section(FINDINGS, partial(self._kept, "findings"))

    def entries(self) -> list[MemoryEntry]:
        """All that a model may be shown here."""
        of_user = self.memory.of_user(self.project)
        return [*of_user, *self._kept("session"), *self._kept("findings")]

    def note_answer(self, text: str) -> None:
        """The model has said this: what of memory it has used counts as used."""
        if text:
            entries = self.entries()
            self.memory.note_use(named_in(text, [(e.id, e.document.fact) for e in entries]))

    def tidy(self) -> str:
        """Expire what was not used. Returns what the user should read of it, empty for
        nothing."""
        return _news(self.memory.tidy(self.session))

    def take_over(self) -> None:
        """A fork has what its parent knew, from the call on that is under way; its chat is known
        now."""
        if self.inheritance is not None:
            self.inheritance.take_over()

    def _kept(self, place: Place) -> list[MemoryEntry]:
        stored = self.memory.of_session(self.session, place)
        if self.inheritance is None:
            return stored
        waiting = [
            MemoryEntry(document, _UNCOMMITTED, self.memory.trust.entry(document))
            for document in self.inheritance.uncommitted()
            if document.place == place
        ]
        return sorted([*stored, *waiting], key=lambda e: e.age, reverse=True)

    def _section(
        self, name: str, entries: partial[list[MemoryEntry]], *, has_floor: bool = False
    ) -> EntriesSection:
        store, searched = self.memory.store, self.searched
        return EntriesSection(name, entries, self.ground, store, self.about, has_floor, searched)


def _news(gone: Sequence[MemoryEntry]) -> str:
    unanswered = sum(entry.document.act == "unanswered" for entry in gone)
    counts = {
        "unused for long": len(gone) - unanswered,
        "proposed and never answered": unanswered,
    }
    said = " and ".join(f"{count} {why}" for why, count in counts.items() if count)
    listed = "`foredeck memory list --all` lists them."
    return f"Entries of memory have expired: {said}. {listed}" if said else ""


ENOUGH_WORDS = 2
"""Of an entry that an answer must hold."""

_WORD = re.compile(r"[^\W_][\w.-]{3,}")


def named_in(answer: str, entries: Sequence[tuple[str, str]]) -> list[str]:
    """Those of `entries` (id and text) of which an answer holds two words that no other entry
    has."""
    # One word alone is said by chance, and words of fewer than four letters say nothing.
    words = {id: set(_words(text)) for id, text in entries}
    holders = Counter(word for found in words.values() for word in found)
    said = set(_words(answer))
    return [
        id
        for id, found in words.items()
        if sum(holders[word] == 1 for word in found & said) >= ENOUGH_WORDS
    ]


def _words(text: str) -> list[str]:
    return [word.rstrip(".-").casefold() for word in _WORD.findall(text)]
