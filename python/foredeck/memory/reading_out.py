"""From a model's answer about some turns to entries in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from foredeck.memory.entry import MemoryEntry
from foredeck.memory.extracting.judging import Accept, JudgedLine, Surroundings, judge
from foredeck.memory.extracting.likeness import KnownFact
from foredeck.memory.extracting.lines import LASTING
from foredeck.memory.extracting.question import Saying
from foredeck.memory.keeping import NewMemory
from foredeck.memory.reading import MemoryReader, holds_in
from foredeck.memory.taking import Extracted, FoundMemory, TakenIn
from foredeck.memory.turns import TurnTexts
from foredeck.model.extractions import ExtractionDocument, extraction_id
from foredeck.model.memory import MemoryState
from foredeck.model.records import turn_id
from foredeck.store.privacy import is_private


@dataclass(frozen=True, slots=True)
class AskedTurns:
    """The turns `first` to `last` of a session, about which a model was asked: what was said and
    brought in them, and which of that it was shown.

    live   number of the first turn that came about at this user's side
    typed  what the user typed since then
    """

    session: str
    project: str | None
    first: int
    last: int
    texts: TurnTexts
    shown: Sequence[Saying]
    live: int = 1
    typed: Sequence[str] = ()


def read_out(
    memory: Extracted, turns: AskedTurns, answer: str, accept: Accept
) -> tuple[list[JudgedLine], TakenIn | None]:
    """Judge an answer and keep what it is good for, with the record that these turns are read out.

    What became of each line, and what was taken in; None where another process was faster.
    """
    around = Surroundings(
        accept,
        private=is_private(memory.store, turns.session),
        earlier=frozenset(turn_id(turns.session, n) for n in range(turns.first, turns.live)),
        typed=turns.typed if memory.trust.said_by_user(turns.session) == "user-stated" else (),
    )
    known = known_facts(memory, turns.session, turns.project)
    judged = judge(answer, turns.shown, turns.texts.tools, known, around)
    refused = Counter(each.reason for each in judged if each.reason is not None)
    record = ExtractionDocument(
        id=extraction_id(turns.session, turns.last),
        session=turns.session,
        first=turns.first,
        last=turns.last,
        refused=dict(sorted(refused.items())),
        time_ms=memory.now_ms(),
    )
    found = [_found(each, turns) for each in judged if each.fate != "refuse"]
    return judged, memory.take(record, found)


def _found(judged: JudgedLine, turns: AskedTurns) -> FoundMemory:
    new = NewMemory(
        category=judged.category,
        fact=judged.fact,
        native=judged.native,
        session=turns.session,
        project=turns.project,
        turn=judged.turn,
        # A model's wording of what the user said is the model's.
        learned_from="user_turn" if judged.stated else "assistant_turn",
        tool_originated=judged.tool_originated,
    )
    keeps = judged.category not in LASTING
    return FoundMemory(new, judged.fate == "propose", judged.replaces if keeps else None)


_AS: Mapping[MemoryState, str] = {
    "kept": "kept",
    "proposed": "waiting",
    "refused": "refused",
    "deleted": "refused",
}
"""What the user has refused or taken out is not asked about again."""


def known_facts(
    memory: MemoryReader, session: str, project: str | None
) -> Mapping[str, list[KnownFact]]:
    """By category, for a new fact of a session. What is kept of the user need not be said again for
    a session."""
    entries = memory.all()
    lasting = [*_facts(entry for entry in entries if _is_of_user(entry, project))]
    own = [*_facts(entry for entry in entries if _is_of(entry, session)), *lasting]
    return {"preference": lasting, "decision": lasting, "fact": own, "context": own}


def _is_of_user(entry: MemoryEntry, project: str | None) -> bool:
    if entry.document.place != "global":
        return False
    return project is None or holds_in(entry, project)


def _is_of(entry: MemoryEntry, session: str) -> bool:
    return entry.document.place == "session" and entry.document.session == session


def _facts(entries: Iterable[MemoryEntry]) -> Iterator[KnownFact]:
    for entry in entries:
        document, state = entry.document, _AS.get(entry.document.state)
        if state is None:
            continue
        stated = entry.trust == "user-stated"
        for text in filter(None, (document.fact, document.native)):
            yield KnownFact(document.id, text, state, stated)  # type: ignore[arg-type]
