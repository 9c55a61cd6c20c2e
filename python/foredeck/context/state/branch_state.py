"""The state after a chain of call records, replayed one record at a time.

Nothing in it is computed again: a record says what has changed since its parent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.context.cache.cached import CacheEntries
from foredeck.context.messages.parts import PieceRef, form_as_host
from foredeck.context.messages.says import packed_span
from foredeck.context.state.sets import Sets
from foredeck.model.call_changes import Delta, PartRow
from foredeck.model.call_values import BranchCost
from foredeck.model.calls import CallRecord
from foredeck.model.messages import MessageKey


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
        # What covers the first messages is cut by a list of no messages as well.
        spans = (packed_span(ours) for group in self.inserts.values() for ours in group)
        return any((span.first or -1) < length < span.until for span in spans if span)

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
            "collapsible": [[*ref, depth] for ref, depth in self.collapsible.items()],
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
            collapsible={PieceRef(*ref): depth for *ref, depth in stored["collapsible"]},
            depth=stored["depth"],
            last=last,
            entries=CacheEntries(dict(used), tuple(touched)),
        )
        state._add_edits(dict(stored["inserts"]), stored["drops"])
        return state

    def _apply_collapsible(self, due: Delta[Any]) -> None:
        self.collapsible.update((PieceRef(*spot), self.depth) for spot in due.added)
        for spot in due.removed:
            self.collapsible.pop(PieceRef(*spot), None)
