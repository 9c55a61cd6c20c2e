"""Taking in what was read out of a session: all of one answer in one transaction, once.

Whoever is killed in between has taken in nothing, and asks again; of two processes that asked about
the same turns, one takes in its answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from foredeck.memory.entry import MemoryEntry
from foredeck.memory.keeping import BUSY, Memory, NewMemory
from foredeck.memory.rules import MemoryRefused, too_many
from foredeck.model.documents import Document
from foredeck.model.extractions import ExtractionDocument
from foredeck.model.memory import MemoryDocument
from foredeck.store.change import changed
from foredeck.store.protocol import Batch, Token


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """What was read out. `ask`: the user decides; `replaces`: id of an entry of the session that
    says the contrary, which it replaces."""

    new: NewMemory
    ask: bool
    replaces: str | None = None


@dataclass(frozen=True, slots=True)
class TakenIn:
    """What became of it: entries kept at once, those that wait, and those that left for them."""

    kept: tuple[MemoryEntry, ...]
    proposed: tuple[MemoryEntry, ...]
    gone: tuple[MemoryEntry, ...]


@dataclass(slots=True)
class _Plan:
    """The documents of one transaction."""

    comers: list[MemoryDocument] = field(default_factory=list)
    leaving: dict[str, tuple[MemoryDocument, MemoryEntry]] = field(default_factory=dict)
    crowded_out: int = 0
    """How many had no room beside what is worth more."""


class Extracted(Memory):
    """The memory of one user, for what was read out of sessions."""

    def take(self, record: ExtractionDocument, found: Sequence[FoundMemory]) -> TakenIn | None:
        """Store what was found, with the record of it. None where another process was faster.

        Raises `MemoryRefused` where others write all the time.
        """

        def attempt() -> TakenIn | None:
            if self.store.head(record.id) is not None:
                return None
            plan = self._plan(found)
            batch = Batch(_recorded(record, plan))
            expect: dict[str, Token | None] = {document.id: None for document in batch.puts}
            batch.puts += [document for document, _ in plan.leaving.values()]
            batch.expect = {**expect, **{id: e.token for id, (_, e) in plan.leaving.items()}}
            self.store.commit(batch)
            return self._taken(plan)

        return changed(attempt, MemoryRefused(BUSY))

    def _plan(self, found: Sequence[FoundMemory]) -> _Plan:
        plan = _Plan()
        groups: dict[tuple[str, str], list[MemoryDocument]] = defaultdict(list)
        for each in found:
            document = self._of(each)
            groups[document.state, document.place].append(document)
            if document.state == "kept" and each.replaces is not None:
                self._replace(each.replaces, document, plan)
        for comers in groups.values():
            self._make_room(comers, plan)
        return plan

    def _of(self, found: FoundMemory) -> MemoryDocument:
        document = self._new(found.new)
        # Beyond the session nothing is kept unasked that does not carry the user's own word.
        if found.ask or (document.place == "global" and document.vouched is None):
            document.state = document.act = "proposed"
        if document.place == "global":
            self._check_may_leave(document.session)
        return document

    def _replace(self, id: str, by: MemoryDocument, plan: _Plan) -> None:
        old = self.get(id)
        if old is None or old.document.state != "kept" or id in plan.leaving:
            return
        if old.trust == "user-stated" and by.vouched is None:
            return
        document = self._leaving(old, "superseded")
        document.superseded_by = by.id
        plan.leaving[id] = document.seal(), old

    def _make_room(self, comers: Sequence[MemoryDocument], plan: _Plan) -> None:
        """The newcomers of one place and state, and who leaves for them."""
        there, most, becomes = self._place_of(comers[0])
        stay = [entry for entry in there if entry.id not in plan.leaving]
        new = {d.id: MemoryEntry(d, Token(""), self.trust.entry(d)) for d in comers}
        over = too_many([*stay, *new.values()], most)
        for entry in over:
            if entry.id not in new:
                plan.leaving[entry.id] = self._leaving(entry, becomes), entry
        out = {entry.id for entry in over}
        plan.comers += [document for document in comers if document.id not in out]
        plan.crowded_out += len(out & new.keys())

    def _taken(self, plan: _Plan) -> TakenIn:
        entries = [self._reread(document.id) for document in plan.comers]
        return TakenIn(
            tuple(entry for entry in entries if entry.document.state == "kept"),
            tuple(entry for entry in entries if entry.document.state == "proposed"),
            tuple(entry for _, entry in plan.leaving.values()),
        )


def _recorded(record: ExtractionDocument, plan: _Plan) -> list[Document]:
    crowded = {"full": plan.crowded_out} if plan.crowded_out else {}
    recorded = record.model_copy(
        update={
            "entries_kept": [d.id for d in plan.comers if d.state == "kept"],
            "entries_proposed": [d.id for d in plan.comers if d.state == "proposed"],
            "refused": {**record.refused, **crowded},
        }
    )
    return [recorded.seal(), *(document.seal() for document in plan.comers)]
