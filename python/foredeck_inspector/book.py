"""Calls and answers of a session, read once, then only what is new."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.accounting.figure import used
from foredeck.accounting.stored import Kind, compositions
from foredeck.context.intake.toolcalls import TOOL_ORIGIN
from foredeck.context.messages.shape import Message, time_of, took_ms
from foredeck.context.state.call_log import spent_at
from foredeck.context.state.gauge import plain_tokens, sent_tokens
from foredeck.context.state.stored_chat import Inherited, inherited_turns
from foredeck.lookup.sessions import StoredBranch, branches_of, count_calls
from foredeck.model.call_values import CHARS_PER_TOKEN, REASONS, UNSENT, Decision, ReportedUsage
from foredeck.model.calls import CallRecord
from foredeck.model.documents import ChatDocument, chat_id, session_object_id
from foredeck.model.messages import load_messages, text_in
from foredeck.model.records import TurnDocument, call_id, turn_id
from foredeck.sources.snapshots import AT_MS, version_ms
from foredeck.store.protocol import Head, portions
from foredeck.store.store import Store

PORTION = 250
Advance = Callable[[int, int], None]
ASKED_CHARS = 200
_REPORTED = 50
"""Later calls in which a provider's count may come."""


@dataclass(slots=True)
class BookedCall:
    """A model call: its prompt, cost, and `answer`."""

    ordinal: int
    time_ms: int
    model: str
    window: int
    kind: str
    why: str
    sent: int
    plain: int
    folded: int
    folded_now: list[str]
    lost: str
    cached: float | None
    """Its share in the provider's cache."""
    cost: float | None
    """In dollars, if known."""
    cost_tokens: float
    """In tokens of uncached input."""
    is_unsent: bool = False
    kinds: Mapping[Kind, int] = field(default_factory=dict)
    """Tokens by kind, once worked out."""
    answer: BookedAnswer | None = None


@dataclass(slots=True)
class BookedTool:
    """A tool call of an answer; times are None if unknown."""

    object: str
    name: str
    shown: str
    failed: bool
    begun_ms: int | None
    ended_ms: int | None

    @property
    def took_ms(self) -> int | None:
        """How long it took."""
        return _between(self.begun_ms, self.ended_ms)


@dataclass(slots=True)
class BookedAnswer:
    """A model's answer, or words without one."""

    id: str
    number: int
    session: str
    turn: int
    asked: str | None
    model: str
    usage: dict[str, Any]
    begun_ms: int | None
    spoken_ms: int | None
    tools: list[BookedTool]
    call: int | None
    is_answer: bool

    @property
    def ended_ms(self) -> int | None:
        """When it was written and its tools had ended."""
        return max(filter(None, (self.spoken_ms, *(t.ended_ms for t in self.tools))), default=None)

    @property
    def model_ms(self) -> int | None:
        """How long the model took."""
        return _between(self.begun_ms, self.spoken_ms)

    @property
    def tools_ms(self) -> int | None:
        """How long its tools took together."""
        return _between(self.spoken_ms, self.ended_ms) if self.tools else None

    @property
    def took_ms(self) -> int | None:
        """How long both took."""
        return _between(self.begun_ms, self.ended_ms)


@dataclass(slots=True)
class Book:
    """A session's calls over all branches, and its answers.

    Only the newest ones change.
    """

    session: str
    calls: list[BookedCall] = field(default_factory=list)
    answers: list[BookedAnswer] = field(default_factory=list)
    inherited: Inherited = field(default_factory=Inherited)
    branches: list[StoredBranch] = field(default_factory=list)
    """All of them, where it has several."""
    is_read: bool = False
    rows: list[dict[str, Any]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _tips: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Ordinal and length of each call."""
    _answered: dict[str, int] = field(default_factory=dict)
    """The call of each answer, by address."""
    _newest: dict[int, CallRecord] = field(default_factory=dict)
    """Newest calls, of which reports may come."""

    def is_current(self, store: Store) -> bool:
        """Whether nothing has come since."""
        return self.is_read and self._counts(store) == (len(self.calls), self._own)

    def read(self, store: Store, advance: Advance) -> None:
        """Takes in what is new."""
        with self._lock:
            if not self.is_current(store):
                self._read(store, advance)
                self.rows = []
            self.is_read = True

    def work_out_kinds(self, store: Store, advance: Advance) -> None:
        """Finds out what the prompts were made of."""
        with self._lock:
            wanted = {call.ordinal for call in self.calls if not call.kinds}
            heads = store.query("call", {"session": self.session}) if wanted else []
            found = branches_of(store, self.session, heads).all if heads else ()
            self.branches = list(found) if len(found) > 1 else self.branches
            for one in compositions(store, heads, wanted):
                kinds = {kind: tokens_of(one.record, chars) for kind, chars in one.chars.items()}
                self.calls[one.record.ordinal - 1].kinds = kinds
                advance(one.record.ordinal, len(self.calls))
            self.rows = []

    @property
    def _own(self) -> int:
        return len(self.answers) - len(self.inherited.turns)

    def _counts(self, store: Store) -> tuple[int, int]:
        chat = store.head(chat_id(self.session))
        turns = 0 if chat is None else chat.view(ChatDocument).turn_count
        return count_calls(store, self.session), turns

    def _read(self, store: Store, advance: Advance) -> None:
        calls, turns = self._counts(store)
        ids = [call_id(self.session, number) for number in range(len(self.calls) + 1, calls + 1)]
        for heads in _portions(store, ids):
            for head in heads:
                self._add_call(CallRecord(head.fields))
            advance(len(self.calls), calls + turns)
        wrapper = store.head(session_object_id(self.session))
        stamps_begin = (wrapper.fields.get("harness") if wrapper else None) in (None, "pi")
        if not self.is_read:
            self.inherited = inherited_turns(store, self.session)
            self._add_answers(store, self.inherited.turns, stamps_begin=stamps_begin)
        # The newest may have got tool calls and an end since.
        first = max(0, self._own - 2)
        del self.answers[len(self.inherited.turns) + first :]
        ids = [turn_id(self.session, number) for number in range(first + 1, turns + 1)]
        for heads in _portions(store, ids):
            self._add_answers(store, heads, stamps_begin=stamps_begin)
            advance(calls + self._own, calls + turns)

    def _add_call(self, record: CallRecord) -> None:
        stats, cache, decision = record.stats, record.cache, record.decision
        prompt = (cache.read or 0) + (cache.written or 0) + (cache.fresh or 0)
        self.calls.append(
            BookedCall(
                record.ordinal,
                record.time_ms,
                record.model.name,
                record.model.window or 0,
                decision.kind,
                why(decision) or decision.host_words,
                sent_tokens(record),
                plain_tokens(record),
                stats.folded,
                folded_handles(record),
                record.lost.sum.text,
                None if cache.read is None or not prompt else cache.read / prompt,
                *_cost(record),
            )
        )
        self._tips[record.id] = record.ordinal, record.length
        parent = self._tips.get(record.parent or "")
        address = next(record.addresses, None)
        if parent is not None and address is not None and record.shared == parent[1]:
            self._answered.setdefault(address, parent[0])
        for ack in record.acks:
            if ack.outcome in UNSENT and 0 < ack.call <= len(self.calls):
                self.calls[ack.call - 1].is_unsent = True
        if (reported := cache.reported) is not None and reported.call in self._newest:
            call = self.calls[reported.call - 1]
            call.cost, call.cost_tokens = _cost(self._newest[reported.call], reported)
        self._newest[record.ordinal] = record
        self._newest.pop(record.ordinal - _REPORTED, None)

    def _add_answers(self, store: Store, turns: Sequence[Head], *, stamps_begin: bool) -> None:
        tools = store.heads(id for turn in turns for id in turn.view(TurnDocument).toolcall_ids)
        asked = load_messages([a for turn in turns if (a := turn.fields.get("user"))], store.blobs)
        for turn in turns:
            said = asked.get(str(turn.fields.get("user")))
            answer = self._answer(turn, tools, said, stamps_begin=stamps_begin)
            self.answers.append(answer)
            if answer.call is not None and answer.is_answer:
                self.calls[answer.call - 1].answer = answer

    def _answer(
        self, turn: Head, tools: Mapping[str, Head], asked: Message | None, *, stamps_begin: bool
    ) -> BookedAnswer:
        fields, meta = turn.fields, turn.fields.get("assistant_meta") or {}
        stamp = meta.get("timestamp")
        ids = turn.view(TurnDocument).toolcall_ids
        made = [_tool(id, tools.get(id)) for id in ids]
        if self.answers:
            _drop_late(self.answers[-1], stamp)
        before = self.answers[-1].ended_ms if self.answers else None
        before = time_of(asked or {}) or before or stamp
        begun, spoken = (stamp, _spoken_ms(fields, stamp)) if stamps_begin else (before, stamp)
        began = [tool.begun_ms for tool in made if tool.begun_ms]
        if spoken is None and began:
            spoken = min(began)
        at = spoken
        for tool in made:
            if tool.begun_ms is None and at and tool.ended_ms and tool.ended_ms >= at:
                tool.begun_ms = at
            at = tool.ended_ms or at
        ended = str(fields.get("answers") or "").rpartition(":")[2]
        call = int(ended) if ended.isdecimal() else self._answered.get(str(fields["assistant"]))
        return BookedAnswer(
            turn.id,
            int(turn.id.rpartition(":")[2]),
            str(fields["session"]),
            fields["user_turn"],
            None if asked is None else _first_words(asked),
            str(meta.get("model") or ""),
            used(meta),
            begun,
            spoken,
            made,
            call if call is not None and 0 < call <= len(self.calls) else None,
            bool(fields.get("assistant")),
        )


def tokens_of(record: CallRecord, chars: int) -> int:
    """Characters of a call's prompt in tokens, at the rate of the time."""
    return round(chars / (record.stats.rate or CHARS_PER_TOKEN))


def why(decision: Decision) -> str:
    """Why a prompt was rewritten; may be empty."""
    if not decision.is_rebase:
        return ""
    return REASONS.get(decision.reason or "", str(decision.reason))


def folded_handles(record: CallRecord) -> list[str]:
    folded = (row.subject for row in record.ops if row.form == "reference")
    return [f"@{handle}" for handle in dict.fromkeys(folded) if handle is not None]


def _portions(store: Store, ids: Sequence[str]) -> Iterator[list[Head]]:
    for some in portions(ids, PORTION):
        found = store.heads(some)
        yield [found[id] for id in some if id in found]


def _cost(record: CallRecord, reported: ReportedUsage | None = None) -> tuple[float | None, float]:
    """The cost of a prompt, in dollars if known, and in tokens of uncached input."""
    spent = spent_at(record, reported)
    money = spent.ours * spent.price / 1e6 if spent.price and spent.calls else None
    return money, spent.ours


def _tool(id: str, head: Head | None) -> BookedTool:
    if head is None:
        return BookedTool(id, "tool", "", False, None, None)
    fields, ended = head.fields, recorded_ms(head)
    took = fields.get("took_ms")
    begun = ended - took if ended and isinstance(took, int) else None
    shown = str(fields.get("args_display") or "")
    failed = fields.get("status") == "fail"
    return BookedTool(id, str(fields.get("tool") or "tool"), shown, failed, begun, ended)


def _spoken_ms(turn: Mapping[str, Any], begun: int | None) -> int | None:
    """When an answer was written that says how long that took."""
    took = took_ms((turn.get("extras") or {}).get(turn.get("assistant")) or {})
    return None if begun is None or took is None else begun + took


def recorded_ms(call: Head) -> int | None:
    """When a tool's result was written, if known."""
    provenance = call.fields.get("provenance") or {}
    return (
        version_ms(call) if AT_MS in provenance or provenance.get("origin") == TOOL_ORIGIN else None
    )


def _drop_late(answer: BookedAnswer, next_ms: int | None) -> None:
    for tool in answer.tools:
        if tool.ended_ms and next_ms and tool.ended_ms > next_ms:
            tool.begun_ms = tool.ended_ms = None


def _first_words(message: Message) -> str:
    return " ".join(text_in(message.get("content")).split())[:ASKED_CHARS]


def _between(begun: int | None, ended: int | None) -> int | None:
    return ended - begun if begun and ended and ended >= begun else None
