"""The sections of the head that memory has: rules, and what is kept of the user, the session and
its data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from foredeck.memory.entry import MemoryEntry
from foredeck.memory.ground import GroundReader
from foredeck.memory.rendering import cut_text, line_of, section_text
from foredeck.model.memory import MemoryDocument
from foredeck.store.protocol import Store

RULES = "rules, by the user"
OF_USER = "memory of the user and the project"
OF_SESSION = "memory of this session"
FINDINGS = "findings in this session's data"


@dataclass(frozen=True, slots=True)
class RulesSection:
    """What the user has written down as standing rules. It is no memory: nothing is learned."""

    path: Path
    name: str = RULES

    def text(self, limit: int) -> str:
        """The file as far as it fits."""
        try:
            return cut_text(self.path.read_text("utf-8", "replace").strip(), limit)
        except OSError:
            return ""


@dataclass(frozen=True, slots=True)
class EntriesSection:
    """One place of memory. `entries` gives those that are kept there now, the newest first."""

    name: str
    entries: Callable[[], Sequence[MemoryEntry]]
    ground: GroundReader
    store: Store

    def text(self, limit: int) -> str:
        """Those whose ground has not moved, as far as they fit."""
        standing, moved = self._sorted_out()
        return section_text(standing, len(moved), limit)

    def is_withdrawn(self, said: str) -> bool:
        """Whether a line that stands in the prompt may not stand there any longer: the user has
        taken it out or moved it away, or its ground has moved.

        What merely reads otherwise by now, or has made room for others, can wait for the next time
        that the head is written.
        """
        standing = [line for line in said.splitlines() if line.startswith("- ")]
        if not standing:
            return False
        valid, _moved = self._sorted_out()
        unknown = _without(standing, map(line_of, valid))
        return bool(unknown) and bool(_without(unknown, self._may_wait()))

    def _sorted_out(self) -> tuple[list[MemoryEntry], list[MemoryEntry]]:
        entries = self.entries()
        moved = [entry for entry in entries if self.ground.moved(entry.document.grounds)]
        gone = {entry.id for entry in moved}
        return [entry for entry in entries if entry.id not in gone], moved

    def _may_wait(self) -> Iterable[str]:
        """The lines of versions that nobody has withdrawn: of what is kept here in other words by
        now, and of what left without an act of the user's."""
        here = {entry.id for entry in self._sorted_out()[0]}
        for head in self.store.query("memory"):
            document = MemoryDocument.model_validate(dict(head.fields))
            left = document.state in ("superseded", "evicted", "expired")
            if head.id in here or (left and not self.ground.moved(document.grounds)):
                for version in self.store.history(head.id):
                    old = MemoryDocument.model_validate(dict(version.fields))
                    for trust in ("user-stated", "derived"):
                        yield line_of(MemoryEntry(old, version.token, trust))


def _without(lines: Iterable[str], known: Iterable[str]) -> list[str]:
    """Those that no known line begins with: the last one of a section may have been cut."""
    texts = list(known)
    return [line for line in lines if not any(text.startswith(line) for text in texts)]
