"""Call records as chains: which branch a message list belongs to, and how it was rendered.

A record names its parent, how many of the parent's messages are still there (`kept`), and what
changed. Replaying a chain from its root gives the state after its last call (`BranchState`).
Nothing is computed again: what was decided is read from the records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from foredeck.context.plan.codec import StoredPlan, packed_span
from foredeck.context.plan.ops import PieceRef
from foredeck.context.provider_cache import CacheEntries
from foredeck.context.state.sets import Sets
from foredeck.model.call_values import REWRITTEN, UNSENT, BranchCost
from foredeck.model.calls import CallRecord, in_order
from foredeck.model.lost_reasoning import BlockSpot
from foredeck.model.messages import KnownMessages, MessageKey
from foredeck.model.records import call_id
from foredeck.store.protocol import Head, Store

Load = Callable[[str], CallRecord | None]
"""Fetches the record of a call of another session by its id."""


@dataclass(slots=True)
class CallLog:
    """The call records of a session, and of the sessions that it descends from."""

    by_tip: dict[str, str] = field(default_factory=dict)
    """Id of the newest call with a certain list of messages, by the tip (rolling hash) of the list.
    Calls that never went out are not found."""
    known: set[str] = field(default_factory=set)
    """Addresses of all messages that any call has held."""
    prints: dict[str, str] = field(default_factory=dict)
    """Addresses of messages by their fingerprints, as far as they were sent (`KnownMessages`)."""
    unsent: set[str] = field(default_factory=set)
    """Ids of the calls that never went out."""
    rewritten: dict[str, str] = field(default_factory=dict)
    """What another extension has changed in the request of a call, by the call's id."""
    host_calls: dict[tuple[int, int], str] = field(default_factory=dict)
    """Ids of the calls that went out without us, by their time and their number of messages."""
    models: Counter[str] = field(default_factory=Counter)
    """How many calls each model was asked, by its name."""
    last: CallRecord | None = None
    """The newest record of the session itself, whichever branch it is on."""
    records: dict[str, CallRecord] = field(default_factory=dict)
    """All records by their ids, in the order of the calls."""

    @classmethod
    def load(cls, heads: Iterable[Head]) -> CallLog:
        """The log of one session, from the heads of its call documents."""
        log = cls()
        for record in in_order(head.fields for head in heads):
            log.add(record)
        return log

    @property
    def messages(self) -> KnownMessages:
        """The messages that any call has held."""
        return KnownMessages(self.known, self.prints)

    def record(self, id: str | None) -> CallRecord | None:
        """A record; None where the log has none of that id."""
        return self.records.get(id) if id else None

    @property
    def newest(self) -> int:
        """Ordinal of the newest call, 0 before the first."""
        return 0 if self.last is None else self.last.ordinal

    def add(self, record: CallRecord) -> None:
        """Add the newest record."""
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
        """Add the calls of a session that this one descends from; where both have a list, its own
        call is found."""
        self.records = {**other.records, **self.records}
        self.by_tip = {**other.by_tip, **self.by_tip}
        self.known |= other.known
        self.unsent |= other.unsent

    def unsend(self, id: str) -> None:
        """A call that never went out must not be found as what the provider has seen."""
        self.unsent.add(id)
        record = self.record(id)
        if record is not None and self.by_tip.get(record.tip) == id:
            del self.by_tip[record.tip]

    def leave_out_cut(self) -> bool:
        """Never go on from calls whose earlier ones are no longer stored; returns whether the
        newest is one of them."""
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
        """The records from the root to `id`; none where one of them is no longer stored. `load`
        fetches those of other sessions."""
        chain: list[CallRecord] = []
        while id is not None:
            record = self.record(id) or load(id)
            if record is None:
                return []  # half a chain is not what was sent
            chain.append(record)
            id = record.parent
        return chain[::-1]

    def replay(self, id: str | None, load: Load) -> BranchState:
        """The state after call `id`; an empty one for None."""
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
        """The record whose message list shares the longest beginning with `keys`; `tips`: the
        rolling hashes of these.

        Of several the one that ends there, the newest of those, else the oldest. Returns its id
        and the number of messages shared, `(None, 0)` without a match.
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
        """By record, how many messages its list shares with `keys` from the beginning."""
        found: dict[str, int] = {}
        for id, record in self.records.items():
            kept = record.shared
            # Parents stand before their children. Where a parent shares less than its child has
            # kept of it, the child shares no more than the parent.
            before = kept if kept == 0 else min(kept, found.get(record.parent or "", 0))
            if before == kept:
                before += shared_length(record.addresses, keys, kept)
            found[id] = before
        return found


class Rewritten(NamedTuple):
    """The newest rebase of a branch: at which of its calls, and which messages it changed."""

    depth: int = 0
    first: int = 0
    until: int = 0

    @classmethod
    def by(cls, record: CallRecord, depth: int) -> Rewritten:
        """That of a call which has rewritten the prompt."""
        return cls(depth, record.decision.changed_from or 0, record.length)


@dataclass(slots=True)
class BranchState(StoredPlan):
    """The state after a chain of calls, one record applied after the other."""

    sets: Sets = field(default_factory=Sets)
    released: set[int] = field(default_factory=set)
    """Messages whose content is no longer kept, whether it has left the prompt or not."""
    candidates: dict[PieceRef, int] = field(default_factory=dict)
    """What the next rebase may change, and since which call of the branch."""
    depth: int = 0
    """How many calls the chain has."""
    last: CallRecord | None = None
    """The record of its newest call."""
    cache_entries: CacheEntries = field(default_factory=CacheEntries)
    """What the provider's cache may hold of it."""
    lost: set[BlockSpot] = field(default_factory=set)
    """Blocks of reasoning that the model lacks."""
    rewritten: Rewritten = field(default_factory=Rewritten)

    def apply(self, record: CallRecord) -> None:
        """Go on by one call."""
        if record.shared < len(self.keys):
            self.lost = {spot for spot in self.lost if spot[0] < record.shared}
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
        """What the policy wants to find again."""
        return self.last.policy_state if self.last else {}

    @property
    def cost(self) -> BranchCost:
        """What the branch has cost so far."""
        return self.last.cost if self.last else BranchCost()

    def is_cut(self, length: int) -> bool:
        """Whether something covers messages of which a list of that length holds only some, or
        none though it is at the beginning."""
        # What covers the first messages would else go out before a list that has none of them.
        spans = (packed_span(ours) for group in self.says.values() for ours in group)
        return any((span.first or -1) < length < span.until for span in spans if span)

    def cut(self, length: int) -> None:
        """Forget the messages from `length` on."""
        if length >= len(self.keys):
            return
        StoredPlan.cut(self, length)
        self.cache_entries.cut(length)
        self.released = {index for index in self.released if index < length}
        self.lost = {spot for spot in self.lost if spot[0] < length}
        self.candidates = {
            ref: depth for ref, depth in self.candidates.items() if ref.message < length
        }


def load_record(store: Store, id: str) -> CallRecord | None:
    """A call record of any session; None where it is not stored."""
    head = store.head(id)
    return None if head is None else CallRecord(head.fields)


def ordinal_of(id: str) -> int:
    """The inverse of `call_id`, for the ordinal."""
    return int(id.rpartition(":")[2])


def shared_length(addresses: Iterable[str], keys: list[MessageKey], start: int = 0) -> int:
    """How many of these addresses, from the first, are those of `keys` from `start` on."""
    count = 0
    for address in addresses:
        if start + count >= len(keys) or keys[start + count].address != address:
            break
        count += 1
    return count
