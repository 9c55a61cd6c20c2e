"""The state after a chain of call records, replayed one record at a time.

Nothing in it is computed again: a record says what has changed since its parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foredeck.context.cache.cached import CacheEntries
from foredeck.context.plan.codec import StoredPlan, packed_span
from foredeck.context.plan.ops import PieceRef
from foredeck.context.state.sets import Sets
from foredeck.model.call_values import BranchCost, Delta
from foredeck.model.calls import CallRecord
from foredeck.model.messages import MessageKey


@dataclass(slots=True)
class BranchState(StoredPlan):
    """The state after a chain of calls."""

    sets: Sets = field(default_factory=Sets)
    expired: set[int] = field(default_factory=set)
    """Messages whose content is no longer kept, whether it has left the prompt or not."""
    candidates: dict[PieceRef, int] = field(default_factory=dict)
    """What the next rebase may change, and since which call of the branch."""
    depth: int = 0
    """How many calls the chain has."""
    last: CallRecord | None = None
    """The record of its newest call."""
    entries: CacheEntries = field(default_factory=CacheEntries)
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
        self.entries.apply(record)
        self._apply_candidates(record.due)

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
        # What covers the first messages is cut by a list of no messages as well.
        spans = (packed_span(ours) for group in self.inserts.values() for ours in group)
        return any((span.first or -1) < length < span.until for span in spans if span)

    def cut(self, length: int) -> None:
        """Forget the messages from `length` on."""
        if length >= len(self.keys):
            return
        StoredPlan.cut(self, length)
        self.entries.cut(length)
        self.expired = {index for index in self.expired if index < length}
        self.candidates = {
            ref: depth for ref, depth in self.candidates.items() if ref.message < length
        }

    def to_stored(self) -> dict[str, Any]:
        """As a file keeps it, without `last`."""
        sets, entries = self.sets, self.entries
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
            entries=CacheEntries(dict(used), tuple(touched)),
        )
        state._add_edits(dict(stored["inserts"]), stored["drops"])
        return state

    def _apply_candidates(self, due: Delta[Any]) -> None:
        self.candidates.update((PieceRef(*spot), self.depth) for spot in due.added)
        for spot in due.removed:
            self.candidates.pop(PieceRef(*spot), None)
