"""Call records as chains; replaying one gives the state after its last call.

A record names its parent, how many of its messages remain (`kept`), and what changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from foredeck.context.plan.codec import StoredPlan, packed_span
from foredeck.context.plan.ops import PieceRef
from foredeck.context.provider_cache import CacheEntries
from foredeck.context.state.gauge import counted_chars, is_plausible
from foredeck.context.state.index import Sets
from foredeck.model.call_values import (
    REWRITTEN,
    UNSENT,
    Ack,
    BranchCost,
    CachePrediction,
    CalledModel,
    ModelSpending,
    PromptTokens,
    ReportedUsage,
)
from foredeck.model.calls import BlockSpot, CallRecord, in_order
from foredeck.model.messages import KnownMessages, MessageKey
from foredeck.model.records import call_id
from foredeck.store.protocol import Head
from foredeck.store.store import Store

Load = Callable[[str], CallRecord | None]
"""A call record of another session, by id."""


@dataclass(slots=True)
class CallLog:
    by_tip: dict[str, str] = field(default_factory=dict)
    """The newest sent call with a list, by its rolling hash."""
    known: set[str] = field(default_factory=set)
    """Addresses of every message of every call."""
    prints: dict[str, str] = field(default_factory=dict)
    """Addresses of sent messages by fingerprint."""
    unsent: set[str] = field(default_factory=set)
    """Calls that never went out."""
    rewritten: dict[str, str] = field(default_factory=dict)
    """What another extension changed in a request, by call id."""
    host_calls: dict[tuple[int, int], str] = field(default_factory=dict)
    """Calls without foredeck, by time and number of messages."""
    models: Counter[str] = field(default_factory=Counter)
    """Calls per model name."""
    last: CallRecord | None = None
    """The session's own newest, on any branch."""
    records: dict[str, CallRecord] = field(default_factory=dict)

    @classmethod
    def load(cls, heads: Iterable[Head]) -> CallLog:
        log = cls()
        for record in in_order(head.fields for head in heads):
            log.add(record)
        return log

    @property
    def messages(self) -> KnownMessages:
        """Every message of every call."""
        return KnownMessages(self.known, self.prints)

    def record(self, id: str | None) -> CallRecord | None:
        return self.records.get(id) if id else None

    @property
    def newest(self) -> int:
        """Ordinal of the newest call; 0 before the first."""
        return 0 if self.last is None else self.last.ordinal

    def add(self, record: CallRecord) -> None:
        id = record.id
        self.records[id] = self.last = record
        self.models[record.model.name] += 1
        self.by_tip[record.tip] = id
        self.known.update(record.addresses)
        if record.is_host:
            self.host_calls[record.time_ms, record.length] = id
        for ack in record.acks:
            call = call_id(record.session, ack.call)
            if ack.outcome in UNSENT:
                self.unsend(call)
            elif ack.outcome == REWRITTEN:
                self.rewritten[call] = ack.detail

    def add_ancestor(self, other: CallLog) -> None:
        """The session's own calls win where both have a list."""
        self.records = {**other.records, **self.records}
        self.by_tip = {**other.by_tip, **self.by_tip}
        self.known |= other.known
        self.unsent |= other.unsent

    def unsend(self, id: str) -> None:
        self.unsent.add(id)
        record = self.record(id)
        if record is not None and self.by_tip.get(record.tip) == id:
            del self.by_tip[record.tip]

    def leave_out_cut(self) -> bool:
        """Drops calls without stored ancestors; returns whether the newest is one."""
        # So it is where a session was erased while an engine was at work on it.
        whole: set[str] = set()
        for id, record in self.records.items():  # parents stand before their children
            if record.parent is None or record.parent in whole:
                whole.add(id)
        cut = [id for id in self.records if id not in whole]
        for id in cut:
            self.unsend(id)
        return self.last is not None and self.last.id not in whole

    def chain(self, id: str | None, load: Load) -> list[CallRecord]:
        """The records from the root to `id`; empty if one is missing, or they run in a circle."""
        chain: dict[str, CallRecord] = {}
        while id is not None:
            record = self.record(id) or load(id)
            if record is None or id in chain:
                return []  # half a chain is not what was sent
            chain[id] = record
            id = record.parent
        return [*reversed(chain.values())]

    def replay(self, id: str | None, load: Load) -> BranchState:
        """The state after call `id`; empty for None."""
        state = BranchState()
        for record in self.chain(id, load):
            state.apply(record)
        return state

    def sent(self, id: str | None, load: Load) -> StoredPlan:
        """What went out with call `id`."""
        # Without the sets and the cache, which only the next call needs: half the work.
        state = StoredPlan()
        for record in self.chain(id, load):
            state.apply(record)
        return state

    def longest_match(self, keys: list[MessageKey], tips: list[str]) -> tuple[str | None, int]:
        """The record whose list shares the longest beginning, with the length; `(None, 0)` without
        one.

        A list that ends there wins, then the newest.
        """
        length = next((n for n in range(len(tips), 0, -1) if tips[n - 1] in self.by_tip), 0)
        best = self.by_tip[tips[length - 1]] if length else None
        # A tip is found only where a record's whole list begins `keys`. One that differs later on
        # may share more, so every record is looked at, unless there is no more to share: as when
        # a session is resumed with a message that no call has held.
        if length == len(keys) or keys[length].address not in self.known:
            return best, length
        for id, shared in self._shared(keys).items():
            if shared > length and id not in self.unsent:
                best, length = id, shared
        return best, length

    def _shared(self, keys: list[MessageKey]) -> dict[str, int]:
        lengths: dict[str, int] = {}
        for id, record in self.records.items():
            shared = record.shared
            # Parents stand before their children. Where a parent shares less than its child has
            # kept of it, the child shares no more than the parent.
            before = shared if shared == 0 else min(shared, lengths.get(record.parent or "", 0))
            if before == shared:
                before += shared_length(record.addresses, keys, shared)
            lengths[id] = before
        return lengths


class Rewritten(NamedTuple):
    """A branch's newest rebase: its depth, and the messages it changed."""

    depth: int = 0
    first: int = 0
    until: int = 0

    @classmethod
    def by(cls, record: CallRecord, depth: int) -> Rewritten:
        return cls(depth, record.decision.changed_from or 0, record.length)

    def cut(self, length: int) -> Rewritten:
        """The same without messages from `length` on."""
        return self._replace(until=min(self.until, length))


@dataclass(slots=True)
class BranchState(StoredPlan):
    sets: Sets = field(default_factory=Sets)
    released: set[int] = field(default_factory=set)
    """Messages whose content is released, still in the prompt or not."""
    candidates: dict[PieceRef, int] = field(default_factory=dict)
    """With the depth at which each became a candidate."""
    depth: int = 0
    """Number of calls in the chain."""
    last: CallRecord | None = None
    cache_entries: CacheEntries = field(default_factory=CacheEntries)
    """What the provider's cache may hold."""
    lost: set[BlockSpot] = field(default_factory=set)
    """Reasoning blocks that the model lacks."""
    rewritten: Rewritten = field(default_factory=Rewritten)

    def apply(self, record: CallRecord) -> None:
        # Not by `super()`, which does not find the class that slots are added to.
        StoredPlan.apply(self, record)
        changes = record.sets
        self.sets.replay(changes)
        self.released.update(changes.released.added)
        self.released.difference_update(changes.released.removed)
        self.depth += 1
        self.last = record
        if record.decision.is_rebase:
            self.rewritten = Rewritten.by(record, self.depth)
        self.cache_entries.apply(record)
        self.lost |= record.lost.spots
        foldable = record.foldable
        self.candidates.update((PieceRef(*spot), self.depth) for spot in foldable.added)
        for spot in foldable.removed:
            self.candidates.pop(PieceRef(*spot), None)

    @property
    def policy_state(self) -> Mapping[str, Any]:
        return self.last.policy_state if self.last else {}

    @property
    def cost(self) -> BranchCost:
        return self.last.cost if self.last else BranchCost()

    def is_cut(self, length: int) -> bool:
        """Whether a list of that length cuts through a cover or loses the start."""
        # What covers the first messages would else go out before a list that has none of them.
        spans = (packed_span(ours) for group in self.says.values() for ours in group)
        return any((span.first or -1) < length < span.until for span in spans if span)

    def cut(self, length: int) -> None:
        """Forgets the messages from `length` on."""
        if length >= len(self.keys):
            return
        StoredPlan.cut(self, length)
        self.cache_entries.cut(length)
        self.released = {index for index in self.released if index < length}
        self.lost = {spot for spot in self.lost if spot[0] < length}
        self.rewritten = self.rewritten.cut(length)
        self.candidates = {
            ref: depth for ref, depth in self.candidates.items() if ref.message < length
        }


def load_record(store: Store, id: str) -> CallRecord | None:
    head = store.head(id)
    return None if head is None else CallRecord(head.fields)


def ordinal_of(id: str) -> int:
    """The ordinal in a call id."""
    return int(id.rpartition(":")[2])


def shared_length(addresses: Iterable[str], keys: list[MessageKey], start: int = 0) -> int:
    """How many addresses match `keys` from `start` on."""
    count = 0
    for address in addresses:
        if start + count >= len(keys) or keys[start + count].address != address:
            break
        count += 1
    return count


def spent_after(
    log: CallLog, session: str, model: CalledModel, cache: CachePrediction, acks: Sequence[Ack]
) -> list[ModelSpending]:
    """Sums after one more call, which settles earlier ones, or itself if it never goes out."""
    last = log.last
    # Each record has the sums up to its call: to know them, only the newest is read.
    rows = [] if last is None else list(last.spent)
    for ack in acks:
        id = call_id(session, ack.call)
        record = log.record(id) if ack.outcome in UNSENT and id not in log.unsent else None
        if record is not None:
            rows = _with(rows, spent_at(record), -1)
    if (reported := cache.reported) is not None:
        # The answer has told how many tokens it were, and which model.
        record = log.record(call_id(session, reported.call))
        unsent = {ack.call for ack in acks if ack.outcome in UNSENT}
        if record is not None and reported.call not in unsent:
            rows = _with(rows, spent_at(record), -1)
            rows = _with(rows, spent_at(record, reported))
    own = log.newest + 1
    is_sent = not any(ack.call == own and ack.outcome in UNSENT for ack in acks)
    return _with(rows, _spent(model, cache)) if is_sent else rows


def spent_at(record: CallRecord, reported: ReportedUsage | None = None) -> ModelSpending:
    """The cost of one call; `reported`: the provider's counts, if known."""
    if reported is None:
        return _spent(record.model, record.cache)
    spent = _spent(reported.model or record.model, record.cache)
    # Both sides are in the provider's tokens; what of them it had cached is by its rule, so that
    # what it loses of itself is on neither.
    stats, cache = record.stats, record.cache
    foreseen = (cache.read or 0) + (cache.written or 0) + (cache.fresh or 0)
    counted = reported.read + reported.written + reported.fresh
    is_sound = is_plausible(counted_chars(stats), counted - stats.image_tokens)
    scale = counted / foreseen if foreseen and is_sound else 1.0
    return spent._replace(plain=spent.plain * scale, ours=spent.ours * scale)


def spent_by(records: Iterable[CallRecord]) -> list[ModelSpending]:
    """The sums of these calls."""
    rows: list[ModelSpending] = []
    listed = list(records)
    reports = reports_of(listed)
    for record in listed:
        rows = _with(rows, spent_at(record, reports.get(record.id)))
    return rows


def reports_of(records: Iterable[CallRecord]) -> dict[str, ReportedUsage]:
    """Provider counts by call id."""
    reports = ((record.session, record.cache.reported) for record in records)
    return {
        call_id(session, reported.call): reported
        for session, reported in reports
        if reported is not None
    }


def _spent(model: CalledModel, cache: CachePrediction) -> ModelSpending:
    # A call that went out without us counts on neither side.
    if cache.rule is None or cache.baseline is None:
        return ModelSpending(model.name, model.input_price, 0, 0.0, 0.0)
    cost = PromptTokens(cache.read or 0, cache.written or 0, cache.fresh or 0).cost(model)
    return ModelSpending(model.name, model.input_price, 1, cache.baseline.cost(model), cost)


def _with(
    rows: Sequence[ModelSpending], more: ModelSpending, sign: Literal[1, -1] = 1
) -> list[ModelSpending]:
    if not more.calls:
        return list(rows)
    sums: Mapping[tuple[str, float], ModelSpending] = {(row.model, row.price): row for row in rows}
    key = more.model, more.price
    row = sums.get(key, ModelSpending(*key, 0, 0.0, 0.0))
    plain = round(row.plain + sign * more.plain, 1)
    ours = round(row.ours + sign * more.ours, 1)
    sums = {**sums, key: ModelSpending(*key, row.calls + sign * more.calls, plain, ours)}
    return [row for row in sums.values() if row.calls]
