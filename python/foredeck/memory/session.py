"""Memory as one session sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from foredeck.memory.entry import MemoryEntry
from foredeck.memory.ground import GroundReader
from foredeck.memory.keeping import Memory
from foredeck.memory.sections import FINDINGS, OF_SESSION, OF_USER, EntriesSection
from foredeck.memory.using import named_in


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """What is kept of the user, as far as it holds in `project`, and of the session itself."""

    session: str
    project: str
    memory: Memory
    ground: GroundReader

    def of_user(self) -> EntriesSection:
        """What is kept of the user, in the head."""
        return self._section(OF_USER, partial(self.memory.of_user, self.project))

    def of_session(self) -> EntriesSection:
        """What is kept of the session, in the head."""
        place = partial(self.memory.of_session, self.session, "session")
        return self._section(OF_SESSION, place)

    def findings(self) -> EntriesSection:
        """What was found in its data, in the head."""
        return self._section(FINDINGS, partial(self.memory.of_session, self.session, "findings"))

    def entries(self) -> list[MemoryEntry]:
        """All that a model may be shown here."""
        kept = self.memory
        session = [*kept.of_session(self.session, "session")]
        return [*kept.of_user(self.project), *session, *kept.of_session(self.session, "findings")]

    def note_answer(self, text: str) -> None:
        """The model has said this: what of memory it has used counts as used."""
        if text:
            entries = self.entries()
            self.memory.note_use(named_in(text, [(e.id, e.document.fact) for e in entries]))

    def tidy(self) -> str:
        """Let go of what nobody has used; what to tell the user of it, empty for nothing."""
        return _told(self.memory.tidy(self.session))

    def _section(self, name: str, entries: partial[list[MemoryEntry]]) -> EntriesSection:
        return EntriesSection(name, entries, self.ground, self.memory.store)


def _told(gone: Sequence[MemoryEntry]) -> str:
    unanswered = sum(entry.document.act == "unanswered" for entry in gone)
    counts = {
        "that nobody has used for long": len(gone) - unanswered,
        "proposed and never answered": unanswered,
    }
    said = " and ".join(f"{count} {why}" for why, count in counts.items() if count)
    listed = "`foredeck memory list --all` lists them."
    return f"Entries of memory have expired: {said}. {listed}" if said else ""
