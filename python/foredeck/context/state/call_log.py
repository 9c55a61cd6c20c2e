"""Call records as chains: which branch a message list belongs to, and how it was rendered.

A record names its parent, how many of the parent's messages still stand (`kept`) and what
changed. Replaying a chain from its root gives the state after its last call; nothing in it is
computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.context.cache.cached import CacheEntries
from foredeck.context.messages.items import ROOT_TIP, next_tip
from foredeck.context.messages.parts import PieceRef, form_as_host
from foredeck.context.state.sets import Sets
from foredeck.model.call_changes import Delta, PartRow
from foredeck.model.call_values import REWRITTEN, BranchCost
from foredeck.model.calls import CallRecord, in_order
from foredeck.model.messages import MessageKey
from foredeck.model.records import call_id
from foredeck.store.protocol import Head

Load = Callable[[str], CallRecord | None]
"""Fetches the record of a call of another session by its id."""

UNSENT = frozenset({"fallback", "aborted"})
"""Outcomes of calls whose answer never went out."""


@dataclass(slots=True)
class SentState:
    """What went out with the newest of a chain of calls: which messages, and how they were shown.
    Who asks for no more than that replays thousands of records in half the time."""

    keys: list[MessageKey] = field(default_factory=list)
    stored_rows: dict[int, Sequence[Any]] = field(default_factory=dict)
    """Message index to the newest row of its part, as stored: most are replaced unread."""
    inserts: dict[int, list[Any]] = field(default_factory=dict)
    """Messages of ours by the index of the host's message that follows them, packed."""
    drops: set[int] = field(default_factory=set)
    """Indexes of host messages that are not sent."""
    _edited_until: int = field(default=0, compare=False)
    """No insert or drop stands at this index or after it: most calls cut nothing off, and are not
    to look at thousands of them for that."""

    def apply(self, record: CallRecord) -> None:
        """Go on by one call."""
        # In the order of the live call. The rows of the record come last: a call that went out
        # without us has taken in results of its own, and its rows say how those are shown.
        self.cut(record.kept)
        self.keys.extend(record.keys)
        if record.is_host:
            self._send_as_host(record.decision.edited or 0)
        self.stored_rows.update(record.stored_rows)
        self._cut_edits(min(record.kept, record.changed_from))
        self._add_edits(record.inserts, record.drops)

    @property
    def rows(self) -> dict[int, PartRow]:
        """How each message was rendered last, in the order of the messages."""
        return {index: PartRow.from_row(row) for index, row in sorted(self.stored_rows.items())}

    def cut(self, length: int) -> None:
        """Forget the messages from `length` on."""
        if length >= len(self.keys):
            return
        del self.keys[length:]
        rows = self.stored_rows
        self.stored_rows = {index: row for index, row in rows.items() if index < length}
        self._cut_edits(length)

    def _send_as_host(self, edited: int) -> None:
        """Messages from `edited` on went out as the host has them."""
        # `_render_as_host` (calls/recording.py) is the same rule for live parts. Change both or
        # neither: a resumed session must go on byte for byte.
        for index, row in self.rows.items():
            if index >= edited and row.form != "note":
                form = form_as_host(row.form, row.subject)
                sent = row._replace(form=form, packed=None, base=None, slots=())
                self.stored_rows[index] = sent.to_row()
        self._cut_edits(edited)

    def _add_edits(self, inserts: Mapping[int, list[Any]], drops: Sequence[int]) -> None:
        self.inserts.update(inserts)
        self.drops.update(drops)
        last = max(max(inserts, default=-1), max(drops, default=-1))
        self._edited_until = max(self._edited_until, last + 1)

    def _cut_edits(self, length: int) -> None:
        if self._edited_until > length:
            self.inserts = {index: ours for index, ours in self.inserts.items() if index < length}
            self.drops = {index for index in self.drops if index < length}
            self._edited_until = length


@dataclass(slots=True)
class BranchState(SentState):
    """The state after a chain of calls."""

    sets: Sets = field(default_factory=Sets)
    expired: set[int] = field(default_factory=set)
    """Messages whose content goes at the next rebase."""
    collapsible: dict[PieceRef, int] = field(default_factory=dict)
    """What may be folded, and since which call of the branch."""
    depth: int = 0
    """How many calls the chain has."""
    last: CallRecord | None = None
    """The record of its newest call."""
    entries: CacheEntries = field(default_factory=CacheEntries)
    """What the provider's cache may hold of it."""

    def apply(self, record: CallRecord) -> None:
        """Go on by one call."""
        # Not by `super()`, which does not find the class that slots are added to.
        SentState.apply(self, record)
        changes = record.sets
        self.sets.replay(changes)
        self.expired.update(changes.expired.added)
        self.expired.difference_update(changes.expired.removed)
        self.depth += 1
        self.last = record
        self.entries.apply(record)
        self._apply_collapsible(record.due)

    @property
    def policy_state(self) -> Mapping[str, Any]:
        """What the policy wants to find again."""
        return self.last.policy_state if self.last else {}

    @property
    def cost(self) -> BranchCost:
        """What the branch has cost so far."""
        return self.last.cost if self.last else BranchCost()

    def is_cut(self, length: int) -> bool:
        """Whether something stands for messages of which a list of that length holds only some, or
        none though it stands at the beginning."""
        stretches = (
            (ours.get("from", -1), ours["until"])
            for group in self.inserts.values()
            for ours in group
            if "until" in ours
        )
        return any(first < length < until for first, until in stretches)

    def cut(self, length: int) -> None:
        """Forget the messages from `length` on."""
        if length >= len(self.keys):
            return
        SentState.cut(self, length)
        self.entries.cut(length)
        self.expired = {index for index in self.expired if index < length}
        self.collapsible = {
            ref: depth for ref, depth in self.collapsible.items() if ref.message < length
        }

    def _apply_collapsible(self, due: Delta[Any]) -> None:
        self.collapsible.update((PieceRef(*spot), self.depth) for spot in due.added)
        for spot in due.removed:
            self.collapsible.pop(PieceRef(*spot), None)


@dataclass(slots=True)
class CallLog:
    """The call records of a session, and of the sessions that it descends from."""

    records: dict[str, CallRecord] = field(default_factory=dict)
    """By the id of the record."""
    by_tip: dict[str, str] = field(default_factory=dict)
    """Id of the newest record with a message list, by the list's tip."""
    known: set[str] = field(default_factory=set)
    """Addresses of all messages that any call has held."""
    unsent: set[str] = field(default_factory=set)
    """Ids of the calls that never went out."""
    rewritten: dict[str, str] = field(default_factory=dict)
    """What another extension has changed in the request of a call, by the call's id."""
    host_calls: dict[tuple[int, int], str] = field(default_factory=dict)
    """Ids of the calls that went out without us, by their time and their number of messages."""
    last: CallRecord | None = None
    """The newest record of the session itself, whichever branch it is on."""

    @classmethod
    def load(cls, heads: Iterable[Head]) -> CallLog:
        """The log of one session, from the heads of its call documents."""
        log = cls()
        for record in in_order(head.fields for head in heads):
            log.add(record)
        return log

    @property
    def newest(self) -> int:
        """Ordinal of the newest call, 0 before the first."""
        return 0 if self.last is None else self.last.ordinal

    def add(self, record: CallRecord) -> None:
        """Add the newest record."""
        id = record.id
        self.records[id] = self.last = record
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
        """Add the calls of a session that this one descends from; its own come first."""
        self.records = {**other.records, **self.records}
        self.by_tip = {**other.by_tip, **self.by_tip}
        self.known |= other.known
        self.unsent |= other.unsent

    def unsend(self, id: str) -> None:
        """A call that never went out must not be found as what the provider has seen."""
        self.unsent.add(id)
        record = self.records.get(id)
        if record is not None and self.by_tip.get(record.tip) == id:
            del self.by_tip[record.tip]

    def chain(self, id: str | None, load: Load) -> list[CallRecord]:
        """The records from the root to `id`; `load` fetches those of other sessions."""
        chain: list[CallRecord] = []
        while id is not None:
            record = self.records.get(id) or load(id)
            if record is None:
                break
            chain.append(record)
            id = record.parent
        return chain[::-1]

    def replay(self, id: str | None, load: Load) -> BranchState:
        """The state after call `id`; an empty one for None."""
        state = BranchState()
        for record in self.chain(id, load):
            state.apply(record)
        return state

    def sent(self, id: str | None, load: Load) -> SentState:
        """The same without what only going on from it takes."""
        state = SentState()
        for record in self.chain(id, load):
            state.apply(record)
        return state

    def longest_match(self, keys: list[MessageKey]) -> tuple[str | None, int]:
        """The record whose message list shares the longest beginning with `keys`.

        Of several the one that ends there, the newest of those, else the oldest. Returns its id
        and the number of messages shared, `(None, 0)` without a match.
        """
        tip, best, length = ROOT_TIP, None, 0
        for count, key in enumerate(keys, start=1):
            tip = next_tip(tip, key)
            if tip in self.by_tip:
                best, length = self.by_tip[tip], count
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


def shared_length(addresses: Iterable[str], keys: list[MessageKey], start: int = 0) -> int:
    """How many of these addresses, from the first, are those of `keys` from `start` on."""
    count = 0
    for address in addresses:
        if start + count >= len(keys) or keys[start + count].address != address:
            break
        count += 1
    return count
