"""Call records as chains: which branch a message list belongs to, and how it was rendered.

A record names its parent, how many of the parent's messages are still there (`kept`), and what
changed. Replaying a chain from its root gives the state after its last call (`BranchState`).
Nothing is computed again: what was decided is read from the records. A long session keeps a
checkpoint in a file, so that a resumed one reads only the records after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Self

from foredeck.context.plan.codec import StoredPlan, packed_span
from foredeck.context.plan.ops import PieceRef
from foredeck.context.provider_cache import CacheEntries
from foredeck.context.state.sets import Sets
from foredeck.model.call_values import REWRITTEN, UNSENT, BranchCost
from foredeck.model.calls import CallRecord, in_order
from foredeck.model.canonical import kept_by, read_kept
from foredeck.model.messages import KnownMessages, MessageKey
from foredeck.model.records import call_id
from foredeck.store.protocol import Head, Store

DECIDED_BY = (
    *("context/plan/codec.py", "context/plan/ops.py", "context/provider_cache.py"),
    *("context/state/call_log.py", "context/state/sets.py"),
    *("model/call_values.py", "model/calls.py"),
    *("model/canonical.py", "model/messages.py"),
)
"""The modules that decide what follows from records: a checkpoint of other code is not read."""

Load = Callable[[str], CallRecord | None]
"""Fetches the record of a call of another session by its id."""

PORTION = 100
"""How many records are asked for at once, where it is not known how many there are."""


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
    checkpoint: LogCheckpoint | None = None
    """What follows from the records up to its call, which are read only on demand."""
    _records: dict[str, CallRecord] = field(default_factory=dict)
    """In the order of the calls; those that have been read, all where `_read_all` is None."""
    _read_all: Callable[[], Iterable[Head]] | None = None

    @classmethod
    def load(cls, heads: Iterable[Head]) -> CallLog:
        """The log of one session, from the heads of its call documents."""
        log = cls()
        for record in in_order(head.fields for head in heads):
            log.add(record)
        return log

    @classmethod
    def resume(cls, checkpoint: LogCheckpoint, store: Store, session: str) -> CallLog | None:
        """The log of a session that was kept: only the records after the checkpoint are read.
        None where the checkpoint is not of this store."""
        last = checkpoint.record_in(store)
        if last is None:
            return None
        kept, state = checkpoint.log, checkpoint.state
        log = cls(
            by_tip={tip: call_id(session, ordinal) for tip, ordinal in kept["tips"]},
            known={*state["addresses"], *kept["addresses"]},
            prints=dict(zip(kept["prints"], state["addresses"], strict=True)),
            unsent=set(kept["unsent"]),
            rewritten=dict(kept["rewritten"]),
            host_calls={(at, count): id for at, count, id in kept["host_calls"]},
            models=Counter(kept["models"]),
            last=last,
            checkpoint=checkpoint,
            _records={last.id: last},
            _read_all=partial(store.query, "call", {"session": session}),
        )
        # After a crash there are records that no checkpoint has.
        for record in _records_after(store, session, checkpoint.ordinal):
            log.add(record)
        return log

    def check(self, store: Store) -> LogCheckpoint | None:
        """Make a checkpoint of the newest call; None where the store cannot have one.

        Not for the log of a fork, which has calls of several sessions.
        """
        last, file = self.last, lineage(store)
        head = None if last is None or file is None else store.head(last.id)
        if last is None or head is None or file is None:
            return None
        state = self.replay(last.id, partial(load_record, store)).to_stored()
        prints = {address: found_by for found_by, address in self.prints.items()}
        log = {
            # Empty for a message that was not sent since: no fingerprint of the host's is empty.
            "prints": [prints.get(address, "") for address in state["addresses"]],
            "tips": [(tip, ordinal_of(id)) for tip, id in self.by_tip.items()],
            "addresses": sorted(self.known.difference(state["addresses"])),
            "unsent": sorted(self.unsent),
            "rewritten": self.rewritten,
            "host_calls": [[*spot, id] for spot, id in self.host_calls.items()],
            "models": self.models,
        }
        self.checkpoint = LogCheckpoint(last.id, last.ordinal, head.token, file, state, log)
        # Thousands of records take much memory, and hardly any is asked for again: they are
        # dropped, and read once more when one is.
        self._records = {last.id: last}
        self._read_all = partial(store.query, "call", {"session": last.session})
        return self.checkpoint

    @property
    def messages(self) -> KnownMessages:
        """The messages that any call has held."""
        return KnownMessages(self.known, self.prints)

    @property
    def records(self) -> Mapping[str, CallRecord]:
        """All records by their ids, in the order of the calls."""
        if self._read_all is not None:
            read = in_order(head.fields for head in self._read_all())
            # Those that are there already stay the same objects.
            self._records = {**{record.id: record for record in read}, **self._records}
            self._read_all = None
        return self._records

    def record(self, id: str | None) -> CallRecord | None:
        """A record; None where the log has none of that id."""
        if not id:
            return None
        return self._records.get(id) or self.records.get(id)

    @property
    def newest(self) -> int:
        """Ordinal of the newest call, 0 before the first."""
        return 0 if self.last is None else self.last.ordinal

    def add(self, record: CallRecord) -> None:
        """Add the newest record."""
        id = record.id
        self._records[id] = self.last = record
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
        self._records = {**other.records, **self.records}
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
        # A long chain takes long to read and to apply: it starts at the checkpoint, if it can.
        later = self._since_checkpoint(id)
        if later is None or self.checkpoint is None:
            state, later = BranchState(), self.chain(id, load)
        else:
            newest = self._records[self.checkpoint.call]
            state = BranchState.from_stored(self.checkpoint.state, newest)
        for record in later:
            state.apply(record)
        return state

    def _since_checkpoint(self, id: str | None) -> list[CallRecord] | None:
        """The records from the checkpoint to `id`; None where that does not come after it."""
        later: list[CallRecord] = []
        start = None if self.checkpoint is None else self.checkpoint.call
        while id is not None and id != start:
            # Not by `record`, which would read all records of the session.
            if (record := self._records.get(id)) is None:
                return None
            later.append(record)
            id = record.parent
        return None if id is None else later[::-1]

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
            kept = record.kept
            # Parents stand before their children. Where a parent shares less than its child has
            # kept of it, the child shares no more than the parent.
            before = kept if kept == 0 else min(kept, found.get(record.parent or "", 0))
            if before == kept:
                before += shared_length(record.addresses, keys, kept)
            found[id] = before
        return found


@dataclass(slots=True)
class BranchState(StoredPlan):
    """The state after a chain of calls, one record applied after the other."""

    sets: Sets = field(default_factory=Sets)
    expired: set[int] = field(default_factory=set)
    """Messages whose content is no longer kept, whether it has left the prompt or not."""
    candidates: dict[PieceRef, int] = field(default_factory=dict)
    """What the next rebase may change, and since which call of the branch."""
    depth: int = 0
    """How many calls the chain has."""
    last: CallRecord | None = None
    """The record of its newest call."""
    cache_entries: CacheEntries = field(default_factory=CacheEntries)
    """What the provider's cache may hold of it."""

    def apply(self, record: CallRecord) -> None:
        """Go on by one call."""
        # Not by `super()`, which does not find the class that slots are added to.
        StoredPlan.apply(self, record)
        changes = record.sets
        self.sets.replay(changes)
        self.expired.update(changes.expired.added)
        self.expired.difference_update(changes.expired.removed)
        self.depth += 1
        self.last = record
        self.cache_entries.apply(record)
        due = record.due
        self.candidates.update((PieceRef(*spot), self.depth) for spot in due.added)
        for spot in due.removed:
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
        spans = (packed_span(ours) for group in self.inserts.values() for ours in group)
        return any((span.first or -1) < length < span.until for span in spans if span)

    def cut(self, length: int) -> None:
        """Forget the messages from `length` on."""
        if length >= len(self.keys):
            return
        StoredPlan.cut(self, length)
        self.cache_entries.cut(length)
        self.expired = {index for index in self.expired if index < length}
        self.candidates = {
            ref: depth for ref, depth in self.candidates.items() if ref.message < length
        }

    def to_stored(self) -> dict[str, Any]:
        """As a file keeps it, without `last`, which is read from the store."""
        sets, entries = self.sets, self.cache_entries
        return {
            "entries": [key.entry for key in self.keys],
            "addresses": [key.address for key in self.keys],
            "rows": list(self.stored_rows.values()),
            "inserts": list(self.inserts.items()),
            "drops": sorted(self.drops),
            "sets": [sorted(members) for members in (sets.pool, sets.active, sets.pins)],
            "expired": sorted(self.expired),
            "candidates": [[*ref, depth] for ref, depth in self.candidates.items()],
            "depth": self.depth,
            "cached": [list(entries.used.items()), entries.touched],
        }

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any], last: CallRecord) -> BranchState:
        """The inverse of `to_stored`; nothing that it changes later is shared with `stored`."""
        (pool, active, pins), (used, touched) = stored["sets"], stored["cached"]
        state = cls(
            keys=list(map(MessageKey, stored["entries"], stored["addresses"])),
            stored_rows={row[0]: row for row in stored["rows"]},
            sets=Sets(set(pool), set(active), set(pins)),
            expired=set(stored["expired"]),
            candidates={PieceRef(*ref): depth for *ref, depth in stored["candidates"]},
            depth=stored["depth"],
            last=last,
            cache_entries=CacheEntries(dict(used), tuple(touched)),
        )
        state._add_edits(dict(stored["inserts"]), stored["drops"])
        return state


@dataclass(frozen=True, slots=True)
class LogCheckpoint:
    """What follows from the records of a session up to one of its calls.

    The records stay the truth: where a checkpoint is missing, or not of this store, all are read.
    """

    call: str
    """Id of the record of that call."""
    ordinal: int
    token: str
    """Of the transaction that stored it."""
    store: list[Any]
    """Which file it was stored in, and how often versions came in late there (`Lineage`)."""
    state: Mapping[str, Any]
    """Of the branch that ends with the call (`BranchState.to_stored`)."""
    log: Mapping[str, Any]
    """What is searched in all calls of the session, whichever branch they are on."""

    def record_in(self, store: Store) -> CallRecord | None:
        """The record of its call; None where it is not of this store, or not as it is now."""
        head = store.head(self.call) if lineage(store) == self.store else None
        # Where the session was erased and taken in again, the same call has another token.
        return CallRecord(head.fields) if head is not None and head.token == self.token else None

    def to_bytes(self) -> bytes:
        """As a file holds it."""
        return kept_by(DECIDED_BY, {name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | None:
        """The inverse of `to_bytes`; None for what other code has written."""
        fields = read_kept(DECIDED_BY, data)
        return None if fields is None else cls(**fields)


def load_record(store: Store, id: str) -> CallRecord | None:
    """A call record of any session; None where it is not stored."""
    head = store.head(id)
    return None if head is None else CallRecord(head.fields)


def lineage(store: Store) -> list[Any] | None:
    """Which file a store works with, as a checkpoint names it; None where it is not in a file."""
    local = store.local
    return None if local is None else list(asdict(local.lineage()).values())


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


def _records_after(store: Store, session: str, ordinal: int) -> Iterator[CallRecord]:
    """The records of the calls after one, in their order."""
    while True:
        ids = [call_id(session, ordinal + count) for count in range(1, PORTION + 1)]
        heads = store.heads(ids)
        yield from (CallRecord(heads[id].fields) for id in ids if id in heads)
        if len(heads) < PORTION:
            return
        ordinal += PORTION
