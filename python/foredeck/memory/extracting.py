"""From the turns of a session to memory entries."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.errors import Missing
from foredeck.memory.entry import (
    MemoryEntry,
    MemoryReader,
    MemoryRefused,
    holds_in,
    seat_of,
    surplus,
)
from foredeck.memory.judging import (
    LASTING,
    Accept,
    JudgedLine,
    Saying,
    Surroundings,
    ToolTexts,
    judge,
    own_sentences,
    stated_in,
)
from foredeck.memory.keeping import BUSY, Leaving, Memory, NewMemory
from foredeck.memory.words import KnownFact, is_of_project, states_a_rule
from foredeck.model.documents import Document
from foredeck.model.memory import MemoryDocument, MemoryState
from foredeck.model.messages import load_message, text_in
from foredeck.model.records import ExtractionDocument, extraction_id, turn_id
from foredeck.search.texts import Fetched
from foredeck.store.protocol import Batch, Head, Token, retry_on_conflict
from foredeck.store.sessions import is_private
from foredeck.store.store import Store

LOOKED_BACK = 60
"""Earlier turns whose tool results are compared."""
_RESULT_CHARS = 100_000
"""Characters compared of a result."""


def texts_of_turns(
    store: Store, session: str, first: int, last: int
) -> tuple[list[Saying], ToolTexts]:
    # A turn or result that cannot be read is left out: it is gone, and nothing follows from it.
    turns = _turns(store, session, range(first, last + 1))
    back = _turns(store, session, range(max(1, last - LOOKED_BACK), last + 1))
    return _sayings(store, turns), ToolTexts.of(_results(store, back))


def _turns(store: Store, session: str, numbers: Iterable[int]) -> list[Head]:
    ids = [turn_id(session, number) for number in numbers]
    heads = store.heads(ids)
    return [heads[id] for id in ids if id in heads]


def _sayings(store: Store, turns: Sequence[Head]) -> list[Saying]:
    fetched = Fetched(store, turns)
    sayings: list[Saying] = []
    for turn in turns:
        for role in ("user", "assistant"):
            text = _text(turn.fields.get(role), fetched)
            if text.strip():
                sayings.append(Saying(len(sayings) + 1, role, text, turn.id))
    return sayings


def _text(address: Any, fetched: Fetched) -> str:
    if not isinstance(address, str):
        return ""
    try:
        message = load_message(address, fetched.blob)
    except Missing:
        return ""
    return text_in(message.get("content"))


def _results(store: Store, turns: Sequence[Head]) -> list[str]:
    ids = [id for turn in turns for id in turn.fields.get("toolcall_ids") or ()]
    heads = store.heads(ids)
    there = [heads[id] for id in dict.fromkeys(ids) if id in heads]
    fetched = Fetched(store, there)
    texts = []
    for head in there:
        try:
            texts.append(fetched.content(head)[:_RESULT_CHARS])
        except Missing:
            continue
    return texts


# A model's answer


@dataclass(frozen=True, slots=True)
class AskedTurns:
    """Turns about which a model was asked.

    `live`: the first at this user's side; `typed`: what the user typed since.
    """

    session: str
    project: str | None
    first: int
    last: int
    tools: ToolTexts
    shown: Sequence[Saying]
    live: int = 1
    typed: Sequence[str] = ()


def rules_in(sayings: Iterable[Saying]) -> str:
    """The answer without a model: the user's own sentences that state a rule."""
    return "\n".join(
        f"{'decision' if is_of_project(sentence) else 'preference'}|turn-{saying.number}"
        f"|{sentence}|{sentence}"
        for saying in sayings
        if saying.role == "user"
        for sentence in own_sentences(saying.text)
        if states_a_rule(sentence) and "|" not in sentence and stated_in(sentence, sentence)
    )


def read_out(
    memory: ExtractionMemory, turns: AskedTurns, answer: str, accept: Accept
) -> tuple[list[JudgedLine], ExtractionResult | None]:
    """Judges an answer and stores the result; returns each line's fate, and what was stored.

    None if another process was faster.
    """
    around = Surroundings(
        accept,
        private=is_private(memory.store, turns.session),
        earlier=frozenset(turn_id(turns.session, n) for n in range(turns.first, turns.live)),
        typed=turns.typed if memory.trust.said_by_user(turns.session) == "user-stated" else (),
    )
    facts = known_facts(memory, turns.session, turns.project)
    judged = judge(answer, turns.shown, turns.tools, facts, around)
    refused = Counter(each.reason for each in judged if each.reason is not None)
    record = ExtractionDocument(
        id=extraction_id(turns.session, turns.last),
        session=turns.session,
        first=turns.first,
        last=turns.last,
        refused=dict(sorted(refused.items())),
        time_ms=memory.now_ms(),
    )
    memories = [_found(each, turns) for each in judged if each.fate != "refuse"]
    return judged, memory.take(record, memories)


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
"""Refused or removed facts are not proposed again."""


def known_facts(
    memory: MemoryReader, session: str, project: str | None
) -> Mapping[str, list[KnownFact]]:
    """By category, for a session's new fact."""
    # What is kept of the user need not be said again for a session.
    entries = memory.all()
    lasting = [*_facts(e for e in entries if e.document.place == "global" and holds_in(e, project))]
    here = (e for e in entries if (e.document.place, e.document.session) == ("session", session))
    own = [*_facts(here), *lasting]
    return {"preference": lasting, "decision": lasting, "fact": own, "context": own}


def _facts(entries: Iterable[MemoryEntry]) -> Iterator[KnownFact]:
    for entry in entries:
        document, state = entry.document, _AS.get(entry.document.state)
        if state is None:
            continue
        stated = entry.trust == "user-stated"
        for text in filter(None, (document.fact, document.native)):
            yield KnownFact(document.id, text, state, stated)  # type: ignore[arg-type]


# Into the store


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A new memory; `ask`: the user decides; `replaces`: a contrary entry of the session."""

    new: NewMemory
    ask: bool
    replaces: str | None = None


@dataclass(frozen=True, slots=True)
class ExtractionResult:
    """What was extracted: entries kept, proposed, and evicted."""

    kept: tuple[MemoryEntry, ...]
    proposed: tuple[MemoryEntry, ...]
    evicted: tuple[MemoryEntry, ...]


@dataclass(slots=True)
class _Plan:
    """One transaction's documents."""

    newcomers: list[MemoryDocument] = field(default_factory=list)
    leaving: dict[str, Leaving] = field(default_factory=dict)
    crowded_out: int = 0
    """Entries without room beside worthier ones."""


class ExtractionMemory(Memory):
    """One user's memory, for extraction."""

    # An answer is stored in one transaction, once, with the record that its turns are read out.
    # Whoever is killed before has taken in nothing, and asks again; of two processes that asked
    # about the same turns, one takes in its answer.

    def take(
        self, record: ExtractionDocument, found: Sequence[FoundMemory]
    ) -> ExtractionResult | None:
        """Stores memories with the record; None if another process was faster.

        Raises `MemoryRefused` under constant writes by others.
        """

        def attempt() -> ExtractionResult | None:
            if self.store.head(record.id) is not None:
                return None
            plan = self._plan(found)
            batch = Batch(_recorded(record, plan))
            expect: dict[str, Token | None] = {document.id: None for document in batch.puts}
            batch.puts += [document for document, _ in plan.leaving.values()]
            batch.expect = {**expect, **{id: e.token for id, (_, e) in plan.leaving.items()}}
            self.store.commit(batch)
            return self._taken(plan)

        return retry_on_conflict(attempt, MemoryRefused(BUSY))

    def _plan(self, found: Sequence[FoundMemory]) -> _Plan:
        plan = _Plan()
        groups: dict[tuple[str, ...], list[MemoryDocument]] = defaultdict(list)
        for each in found:
            document = self._of(each)
            groups[seat_of(document)].append(document)
            if document.state == "kept" and each.replaces is not None:
                self._replace(each.replaces, document, plan)
        for newcomers in groups.values():
            self._make_room(newcomers, plan)
        return plan

    def _of(self, found: FoundMemory) -> MemoryDocument:
        document = self._new(found.new)
        # Beyond the session nothing is kept unasked that does not carry the user's own word.
        if found.ask or (document.place == "global" and document.vouched is None):
            document.state = document.act = "proposed"
        self._check_may_leave(document)
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

    def _make_room(self, newcomers: Sequence[MemoryDocument], plan: _Plan) -> None:
        there, most, becomes = self._place_of(newcomers[0])
        stay = [entry for entry in there if entry.id not in plan.leaving]
        new = {d.id: MemoryEntry(d, Token(""), self.trust.entry(d)) for d in newcomers}
        over = surplus([*stay, *new.values()], most)
        for entry in over:
            if entry.id not in new:
                plan.leaving[entry.id] = self._leaving(entry, becomes), entry
        out = {entry.id for entry in over}
        plan.newcomers += [document for document in newcomers if document.id not in out]
        plan.crowded_out += len(out & new.keys())

    def _taken(self, plan: _Plan) -> ExtractionResult:
        entries = [self._reread(document.id) for document in plan.newcomers]
        return ExtractionResult(
            tuple(entry for entry in entries if entry.document.state == "kept"),
            tuple(entry for entry in entries if entry.document.state == "proposed"),
            tuple(
                entry
                for last_version, entry in plan.leaving.values()
                if last_version.state == "evicted"
            ),
        )


def _recorded(record: ExtractionDocument, plan: _Plan) -> list[Document]:
    crowded = {"full": plan.crowded_out} if plan.crowded_out else {}
    recorded = record.model_copy(
        update={
            "entries_kept": [d.id for d in plan.newcomers if d.state == "kept"],
            "entries_proposed": [d.id for d in plan.newcomers if d.state == "proposed"],
            "refused": {**record.refused, **crowded},
        }
    )
    return [recorded.seal(), *(document.seal() for document in plan.newcomers)]
