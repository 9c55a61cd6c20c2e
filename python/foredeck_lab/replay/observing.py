"""An observer for replays: no model runs, and its cost is counted.

Deterministic, and knows nothing of later messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.config import RebaseSection
from foredeck.context.compactions import SummaryRequest, summary_of
from foredeck.context.messages.items import Item
from foredeck.context.messages.transcript import observable, split_turns
from foredeck.context.rebase import Prices, can_afford, later_calls, prices_of
from foredeck.context.state.chat import turn_of
from foredeck.context.state.facilities import StandIn, StandInKind
from foredeck.context.state.gauge import Gauge
from foredeck.context.state.session import Session
from foredeck.context.summary import written_names
from foredeck.model.call_values import BranchCost
from foredeck.model.names import identifiers
from foredeck.model.observations import (
    NotedDocument,
    ObservationDocument,
    ReflectionDocument,
    observation_id,
    reflection_id,
)
from foredeck.model.records import by_foredeck
from foredeck.observations.chunks import Chunk, ChunkRules, Position, next_chunk, shown_tokens
from foredeck.observations.prompts import TOKENS_PER_NOTE
from foredeck.observations.rules import TimingRules, begins, is_activation_due, to_condense
from foredeck.store.clock import HOUR_MS

SHARE, PER_HOUR = 0.08, 20
"""Share of the session's cost, and questions per hour, for notes."""

SAFE_WORTH = 25
"""A question worth this many times its price is always asked."""

OUTPUT_PRICE = 5.0
"""Relative to an uncached input token."""

INSTRUCTION_TOKENS = 1500
"""An observer's instructions beside the messages."""

NOTE_SHARE, LEAST_NOTE, MOST_NOTE = 0.12, 800, 6000
"""Length of notes: share of what an observer is shown, and bounds, in characters."""

NAMES_CHARS = 600


@dataclass(slots=True)
class AskedBill:
    cost: float = 0.0
    observations: int = 0
    reflections: int = 0
    summaries: int = 0
    """Of the reflections: those of earlier ones."""
    times_ms: list[int] = field(default_factory=list)

    @property
    def questions(self) -> int:
        return self.observations + self.reflections

    def allows(self, price: float, worth: float, ledger: BranchCost, now_ms: int) -> bool:
        """Whether one more question pays and stays within the caps."""
        recent = sum(1 for time in self.times_ms if now_ms - time < HOUR_MS)
        total = self.cost + price
        if price >= worth or recent >= PER_HOUR or total > SHARE * ledger.actual:
            return False
        # It is not known how long a session goes on. So a question that is not worth many times its
        # price must not make the session dearer than it would be with nothing folded.
        return worth >= SAFE_WORTH * price or can_afford(RebaseSection(), ledger, total)

    def add(self, price: float, now_ms: int) -> None:
        """One more question."""
        self.cost += price
        self.times_ms.append(now_ms)


@dataclass(slots=True)
class ReplayObserver:
    """Asked after each call whether to note something.

    `eager`: from the first threshold on.
    """

    cost: Mapping[str, Any] | None
    eager: bool = False
    rules: TimingRules = field(
        # Every message is observed whole: there is no prompt here for which one could be too long.
        default_factory=lambda: TimingRules(chunk=ChunkRules(most=10**9))
    )
    bill: AskedBill = field(default_factory=AskedBill)
    _gauge: Gauge = field(default_factory=Gauge)
    _known: list[StandIn] = field(default_factory=list)
    _in_use: list[StandIn] = field(default_factory=list)
    """Those of them that no reflection replaces."""
    _done: int = 0
    """How many messages are observed."""
    prices: Prices = field(init=False)

    def __post_init__(self) -> None:
        self.prices = prices_of(self.cost)

    def known(self) -> Sequence[StandIn]:
        """All of them, oldest first."""
        return self._known

    def is_due(self, chat_tokens: int, note_tokens: int) -> bool:
        """By the threshold of the default mode."""
        return is_activation_due(
            self.rules,
            "default",
            message_tokens=chat_tokens,
            observation_tokens=note_tokens,
            fits=True,
        )

    def after_call(self, session: Session) -> None:
        record = session.chat.branch_record
        if record is None or not (self._known or self._begins(session, record.model.window)):
            return
        plan = session.chat.branch.plan
        if self._done > len(plan):
            self._done = 0  # the host has replaced its history
        items = plan.items[self._done :]
        messages = observable(items, self._gauge.tokens, cwd=session.info.cwd)
        chunk = next_chunk(
            messages,
            Position(),
            self.rules.chunk,
            lambda chunk: self._pays(session, chunk, record.time_ms),
        )
        if chunk is not None:
            self._observe(session, chunk, record.time_ms)
        self._reflect(session, record.time_ms, record.model.window)

    def _begins(self, session: Session, window: int | None) -> bool:
        tokens = self._gauge.tokens(session.chat.branch.plan.chars_sent)
        return begins(tokens, window) or (self.eager and self.is_due(tokens, 0))

    def _pays(self, session: Session, chunk: Chunk, now_ms: int) -> bool:
        price, branch = self._price(session, chunk), session.chat.branch
        chars = branch.plan.chars[self._done : self._done + len(chunk.messages)]
        leaving = self._gauge.tokens(sum(chars)) - self._note_tokens(chunk)
        worth = leaving * self.prices.read * later_calls(branch.depth)
        return self.bill.allows(price, worth, branch.ledger, now_ms)

    def _price(self, session: Session, chunk: Chunk) -> float:
        prompt = session.chat.branch.plan.chars_sent + session.frame.chars
        alone = self._shown(chunk) + INSTRUCTION_TOKENS
        warm = self._gauge.tokens(prompt) * self.prices.read + INSTRUCTION_TOKENS
        return min(alone, warm) + self._note_tokens(chunk) * OUTPUT_PRICE

    def _shown(self, chunk: Chunk) -> int:
        return sum(shown_tokens(message, self.rules.chunk) for message in chunk.messages)

    def _note_tokens(self, chunk: Chunk) -> int:
        return self._gauge.tokens(self._note_chars(chunk))

    def _note_chars(self, chunk: Chunk) -> int:
        chars = self._shown(chunk) * self._gauge.rate
        return int(max(LEAST_NOTE, min(MOST_NOTE, NOTE_SHARE * chars)))

    def _observe(self, session: Session, chunk: Chunk, now_ms: int) -> None:
        items = session.chat.branch.plan.items[self._done : self._done + len(chunk.messages)]
        text = notes_of(session, items, self._note_chars(chunk))
        covers = [item.key.address for item in items]
        document = ObservationDocument(
            id=observation_id(session.info.id, covers, None, None),
            session=session.info.id,
            covers=covers,
            content=text,
            observed_by="foredeck",
            provenance=by_foredeck(),
        )
        stand_in = StandIn(document.id, "observation", tuple(covers), text)
        self._keep(session, document, stand_in)
        self._in_use.append(stand_in)
        self.bill.add(self._price(session, chunk), now_ms)
        self.bill.observations += 1
        self._done += len(chunk.messages)

    def _reflect(self, session: Session, now_ms: int, window: int | None) -> None:
        noted = [
            _CondensableNote(self._gauge.tokens(len(s.text)), s.kind, now_ms) for s in self._in_use
        ]
        count = to_condense(self.rules, noted, now_ms, window)
        tokens = sum(one.tokens for one in noted[:count])
        price = tokens + INSTRUCTION_TOKENS + tokens // 2 * OUTPUT_PRICE
        worth = tokens / 2 * self.prices.read * later_calls(session.chat.branch.depth)
        if not count or not self.bill.allows(price, worth, session.chat.branch.ledger, now_ms):
            return
        condensed, rest = self._in_use[:count], self._in_use[count:]
        text = "\n".join(_most_telling(each.text) for each in condensed)
        ids = [each.id for each in condensed]
        document = ReflectionDocument(
            id=reflection_id(session.info.id, ids),
            session=session.info.id,
            replaces=ids,
            observations=[each for each in ids if each.startswith("observation:")],
            content=text,
            observed_by="foredeck",
            provenance=by_foredeck(),
        )
        covers = tuple(address for each in condensed for address in each.covers)
        stand_in = StandIn(document.id, "reflection", covers, text)
        self._keep(session, document, stand_in)
        self._in_use = [stand_in, *rest]
        self.bill.add(price, now_ms)
        self.bill.reflections += 1
        self.bill.summaries += any(each.kind == "reflection" for each in condensed)

    def _keep(self, session: Session, document: NotedDocument, made: StandIn) -> None:
        session.objects.workspace.put(document.seal())
        session.objects.workspace.commit()
        self._known.append(made)


@dataclass(frozen=True, slots=True)
class _CondensableNote:
    tokens: int
    kind: StandInKind
    time_ms: int

    @property
    def remark_times(self) -> Sequence[int]:
        # As many as a model would have written.
        return [self.time_ms] * (self.tokens // TOKENS_PER_NOTE)

    @property
    def is_condensed(self) -> bool:
        return self.kind == "reflection"


def notes_of(session: Session, items: Sequence[Item], chars: int) -> str:
    """Notes of at most `chars` characters: a summary, and names beside it."""
    begins = items[0].kind == "user"
    turns = split_turns(items, turn_of(session.chat, items[0]) + (not begins))
    request = SummaryRequest("window", max(400, chars - NAMES_CHARS), 0)
    summary = summary_of(session.objects, turns, 0, request, None, ()).long
    text = "\n".join(summary.split("\n")[1:])
    names_in_text = identifiers(text)
    names = [
        name for turn in turns for name in sorted(written_names(turn)) if name not in names_in_text
    ]
    line = "Names: " + ", ".join(dict.fromkeys(names))
    return f"{text}\n{line[:NAMES_CHARS]}" if names else text


def _most_telling(text: str) -> str:
    selection: list[str] = []
    keeps = True
    for line in text.split("\n"):
        if line.endswith(":") and not line.startswith("- "):
            keeps = line not in ("Files:", "Errors:")
        if keeps:
            selection.append(line)
    return "\n".join(selection)
