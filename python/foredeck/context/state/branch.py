"""Call records as chains: which branch a message list belongs to, and how it was rendered.

A record names its parent, how many of the parent's messages still stand (`kept`) and what
changed. Replaying a chain from its root gives the state after its last call; nothing in it is
computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from foredeck.context.cache.cached import CacheEntries
from foredeck.context.messages.items import ROOT_TIP, next_tip
from foredeck.context.messages.parts import PieceRef
from foredeck.context.state.sets import Sets
from foredeck.model.messages import MessageKey
from foredeck.store.protocol import Head

Fields = Mapping[str, Any]

UNSENT = frozenset({"fallback", "aborted"})

REWRITTEN = "rewritten"
"""Of a call's outcome: somebody else has changed its request, or the one before it."""


@dataclass(slots=True)
class BranchState:
    """The state after a chain of calls."""

    keys: list[MessageKey] = field(default_factory=list)
    rows: dict[int, list[Any]] = field(default_factory=dict)
    """Message index to the newest row of its part."""
    inserts: dict[int, list[Any]] = field(default_factory=dict)
    drops: set[int] = field(default_factory=set)
    sets: Sets = field(default_factory=Sets)
    expired: set[int] = field(default_factory=set)
    state: Mapping[str, Any] = field(default_factory=dict)
    due: dict[PieceRef, int] = field(default_factory=dict)
    depth: int = 0
    """How many calls the chain has."""
    entries: CacheEntries = field(default_factory=CacheEntries)
    """What the provider's cache may hold of it."""

    def apply(self, record: Fields) -> None:
        """Go on by one call."""
        kept = record["kept"]
        self.cut(kept)
        self.keys.extend(MessageKey(entry, address) for entry, address in record["keys"])
        decision = record.get("decision") or {}
        if decision.get("kind") == "host":
            self._as_host(decision.get("edited", 0))
        for row in record.get("parts") or ():
            self.rows[row[0]] = row
        start = min(kept, record.get("changed_from") or 0)
        self.inserts = {i: m for i, m in self.inserts.items() if i < start}
        self.drops = {i for i in self.drops if i < start}
        self.inserts.update((i, m) for i, m in record.get("inserts") or ())
        self.drops.update(record.get("drops") or ())
        changes = record.get("sets") or {}
        self.sets.replay(changes)
        self.expired.update(changes.get("expired+", ()))
        self.expired.difference_update(changes.get("expired-", ()))
        self.state = record.get("state") or {}
        self.depth += 1
        self.entries.apply(record)
        due = record.get("due") or {}
        self.due.update((PieceRef(*ref), self.depth) for ref in due.get("+", ()))
        for ref in due.get("-", ()):
            self.due.pop(PieceRef(*ref), None)

    @property
    def until(self) -> int:
        """Up to which message a summary stands for the chat; 0 where none does."""
        return max((ours.get("until") or 0 for ours in self.inserts.get(0, ())), default=0)

    def cut(self, length: int) -> None:
        """Forget the messages from `length` on."""
        if length >= len(self.keys):
            return
        del self.keys[length:]
        self.entries.cut(length)
        self.rows = {index: row for index, row in self.rows.items() if index < length}
        self.inserts = {index: ours for index, ours in self.inserts.items() if index < length}
        self.drops = {index for index in self.drops if index < length}
        self.expired = {index for index in self.expired if index < length}
        self.due = {ref: depth for ref, depth in self.due.items() if ref.message < length}

    def _as_host(self, edited: int) -> None:
        """Messages from `edited` on went out as the host has them."""
        for index, row in self.rows.items():
            _, form, _, subject, version, _, text_hash, *_ = row
            if index >= edited and form != "note":
                form = "host" if subject is not None or form in ("folded", "dropped") else form
                self.rows[index] = [index, form, None, subject, version, None, text_hash]
        self.inserts = {index: ours for index, ours in self.inserts.items() if index < edited}
        self.drops = {index for index in self.drops if index < edited}


@dataclass(slots=True)
class CallLog:
    """The call records of a session, and of the sessions that it descends from."""

    records: dict[str, Fields] = field(default_factory=dict)
    by_tip: dict[str, str] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    """Addresses of all messages that any call has held."""
    unsent: set[str] = field(default_factory=set)
    """Ids of the calls that never went out."""
    rewritten: dict[str, str] = field(default_factory=dict)
    """What another extension has changed in the request of a call, by the call's id."""
    host_calls: dict[tuple[int, int], str] = field(default_factory=dict)
    """Ids of the calls that went out without us, by their time and their number of messages."""
    newest: int = 0

    @classmethod
    def load(cls, heads: Iterable[Head]) -> CallLog:
        """The log of one session, from the heads of its call documents."""
        log = cls()
        for head in sorted(heads, key=lambda head: head.fields["ordinal"]):
            log.add(head.id, head.fields)
        return log

    def add(self, id: str, record: Fields) -> None:
        """Add the newest record."""
        self.records[id] = record
        self.newest = record["ordinal"]
        self.by_tip[record["tip"]] = id
        self.known.update(address for _, address in record["keys"])
        if (record.get("decision") or {}).get("kind") == "host":
            self.host_calls[record["time_ms"], record["kept"] + len(record["keys"])] = id
        for ordinal, outcome, *more in record.get("acks") or ():
            call = id.rsplit(":", 1)[0] + f":{ordinal}"
            if outcome in UNSENT:
                self.unsend(call)
            elif outcome == REWRITTEN:
                self.rewritten[call] = str(more[0])

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
        if record is not None and self.by_tip.get(record["tip"]) == id:
            del self.by_tip[record["tip"]]

    def chain(self, id: str | None, load: Callable[[str], Fields | None]) -> list[Fields]:
        """The records from the root to `id`; `load` fetches those of other sessions."""
        chain: list[Fields] = []
        while id is not None:
            record = self.records.get(id) or load(id)
            if record is None:
                break
            chain.append(record)
            id = record.get("parent")
        return chain[::-1]

    def replay(self, id: str | None, load: Callable[[str], Fields | None]) -> BranchState:
        """The state after call `id`; an empty one for None."""
        state = BranchState()
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
        if length == len(keys):
            return best, length
        for id, shared in self._shared(keys).items():
            if shared > length and id not in self.unsent:
                best, length = id, shared
        return best, length

    def _shared(self, keys: list[MessageKey]) -> dict[str, int]:
        """By record, how many messages its list shares with `keys` from the beginning."""
        found: dict[str, int] = {}
        for id, record in self.records.items():
            kept, parent = record["kept"], record.get("parent")
            before = kept if kept == 0 else min(kept, found.get(parent or "", 0))
            if before == kept:
                before += _common(record["keys"], keys, kept)
            found[id] = before
        return found


def _common(own: list[list[str | None]], keys: list[MessageKey], start: int) -> int:
    """How many of `own` stand in `keys` from `start` on."""
    count = 0
    for _, address in own:
        if start + count >= len(keys) or keys[start + count].address != address:
            break
        count += 1
    return count
