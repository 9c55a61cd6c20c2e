"""The sections of the head that memory has: rules, and what is kept of the user, the session and
its data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from foredeck.memory.entry import MemoryEntry
from foredeck.memory.ground import GroundReader
from foredeck.memory.rendering import cut_text, is_rule, lines_of, section_text
from foredeck.memory.words import content_words
from foredeck.model.memory import MemoryDocument
from foredeck.regular_files import read_text
from foredeck.store.protocol import Store

RULES = "rules, by the user"
OF_USER = "memory of the user and the project"
OF_SESSION = "memory of this session"
FINDINGS = "findings in this session's data"


def in_order(entries: Iterable[MemoryEntry], about: Collection[str]) -> list[MemoryEntry]:
    """Rules first; among them, and after them, what the project's files are about, then what was
    of use last. Age decides between equals alone."""

    def place(entry: MemoryEntry) -> tuple[bool, int, int, tuple[int, str]]:
        shared = len({*content_words(entry.document.fact)} & {*about})
        return is_rule(entry), shared, entry.document.used_ms, entry.age

    return sorted(entries, key=place, reverse=True)


@dataclass(frozen=True, slots=True)
class RulesSection:
    """What the user has written down as standing rules. It is no memory: nothing is learned."""

    path: Path
    name: str = RULES
    has_floor: bool = True

    def text(self, limit: int) -> str:
        """The file as far as it fits."""
        try:
            return cut_text(read_text(self.path, errors="replace").strip(), limit)
        except OSError:
            return ""


@dataclass(frozen=True, slots=True)
class EntriesSection:
    """One place of memory.

    entries    gives those that are kept there now, the newest first
    about      gives the words that the project's files are about
    has_floor  see `context/head.py`
    searched   whether the model can search what is left out
    """

    name: str
    entries: Callable[[], Sequence[MemoryEntry]]
    ground: GroundReader
    store: Store
    about: Callable[[], Collection[str]] = frozenset
    has_floor: bool = False
    searched: bool = True
    known: dict[str, str] = field(default_factory=dict, repr=False)
    """By a line that stood in the prompt and is not said any more: the entry that it was of."""

    def text(self, limit: int) -> str:
        """Those whose ground has not moved, as far as they fit: what the user has stated for good
        first, then what was of use last."""
        valid, moved = self._sorted_out()
        ordered = in_order(valid, self.about())
        return section_text(ordered, len(moved), limit, searched=self.searched)

    def rules(self) -> list[MemoryEntry]:
        """What the user has stated for good."""
        return [entry for entry in self._sorted_out()[0] if is_rule(entry)]

    def is_withdrawn(self, said: str) -> bool:
        """Whether a line must leave the prompt: the user has taken its entry out or moved it away,
        or its ground has moved.

        What merely reads otherwise by now, or has made room for others, can wait for the next time
        that the head is written.
        """
        shown = [line for line in said.splitlines() if line.startswith("- ")]
        if not shown:
            return False
        valid, _moved = self._sorted_out()
        unknown = _without(shown, (line for entry in valid for line in lines_of(entry)))
        here = {entry.id for entry in valid}
        unknown = [line for line in unknown if not self._may_wait(self.known.get(line), here)]
        if unknown:
            self._look_up(unknown)
        return any(not self._may_wait(self.known.get(line), here) for line in unknown)

    def _sorted_out(self) -> tuple[list[MemoryEntry], list[MemoryEntry]]:
        entries = self.entries()
        moved = [entry for entry in entries if self.ground.moved(entry.document.grounds)]
        gone = {entry.id for entry in moved}
        return [entry for entry in entries if entry.id not in gone], moved

    def _may_wait(self, id: str | None, here: Collection[str]) -> bool:
        """Whether an entry's line can stay in the prompt for now: the entry is kept here in other
        words, or has left memory without an act of the user's."""
        head = None if id is None else self.store.head(id)
        if head is None:
            return False
        document = MemoryDocument.model_validate(dict(head.fields))
        left = document.state in ("superseded", "evicted", "expired")
        return id in here or (left and not self.ground.moved(document.grounds))

    def _look_up(self, lines: Sequence[str]) -> None:
        """Find the entries of these lines. All of memory is searched, so what was found is kept
        for the calls to come."""
        for head in self.store.query("memory"):
            for version in self.store.history(head.id):
                old = MemoryDocument.model_validate(dict(version.fields))
                for trust in ("user-stated", "derived"):
                    for text in lines_of(MemoryEntry(old, version.token, trust)):
                        begun = (line for line in lines if text.startswith(line))
                        self.known.update(dict.fromkeys(begun, head.id))


def _without(lines: Iterable[str], known: Iterable[str]) -> list[str]:
    """Those that no known line begins with: the last one of a section may have been cut."""
    texts = list(known)
    return [line for line in lines if not any(text.startswith(line) for text in texts)]
