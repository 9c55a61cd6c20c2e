"""A branch's objects: listed (pool), in view (active), to stay (pinned).

Call records keep changes, never whole sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from foredeck.model.call_values import Delta, SetChanges


@dataclass(slots=True)
class Sets:
    """Sets where pinned is within active within pool, after every method."""

    pool: set[int] = field(default_factory=set)
    active: set[int] = field(default_factory=set)
    # A pin outlives the content: where that leaves the prompt, since it does not fit or its message
    # has left the list, the object waits, and is pinned again as soon as it is active.
    pins: set[int] = field(default_factory=set)
    """Objects pinned by user or model, in view or not."""
    _recorded: tuple[set[int], ...] = field(init=False)

    def __post_init__(self) -> None:
        self._recorded = tuple(map(set, self._members))

    @property
    def _members(self) -> tuple[set[int], set[int], set[int]]:
        return self.pool, self.active, self.pins

    @property
    def pinned(self) -> AbstractSet[int]:
        """Pinned objects in view."""
        return self.pins & self.active

    @property
    def waiting(self) -> AbstractSet[int]:
        """Pinned objects out of view."""
        return self.pins - self.active

    def innermost(self, ordinal: int) -> str:
        """`pinned`, `waiting` (pinned, out of view), `active`, `inactive` (in the pool) or
        `indexed`."""
        if ordinal in self.pins:
            return "pinned" if ordinal in self.active else "waiting"
        if ordinal in self.active:
            return "active"
        return "inactive" if ordinal in self.pool else "indexed"

    def show(self, ordinal: int) -> None:
        """Puts an object into the pool."""
        self.pool.add(ordinal)

    def activate(self, ordinal: int) -> None:
        self.pool.add(ordinal)
        self.active.add(ordinal)

    def deactivate(self, ordinal: int) -> None:
        """Makes an object inactive, or drops an inactive one from the pool; unpins it."""
        self.pins.discard(ordinal)
        (self.active if ordinal in self.active else self.pool).discard(ordinal)

    def expire(self, ordinal: int) -> None:
        """Makes an object inactive unasked: it stays in the pool, and a pinned one waits."""
        self.active.discard(ordinal)

    def pin(self, ordinal: int) -> None:
        """Activates an object, and keeps it from expiring while it fits."""
        self.activate(ordinal)
        self.pins.add(ordinal)

    def unpin(self, ordinal: int) -> None:
        """Lets an object expire again; it stays active for now."""
        self.pins.discard(ordinal)

    def apply(self, decision: Mapping[str, Any]) -> None:
        ordinal = decision["ordinal"]
        match decision.get("op"):
            case "list":
                self.show(ordinal)
            case "activate":
                self.activate(ordinal)
            case "deactivate":
                self.deactivate(ordinal)
            case "pin":
                self.pin(ordinal)
            case "unpin":
                self.unpin(ordinal)

    def move(self, old: int, new: int) -> None:
        """Replaces an object by another in every set."""
        for members in self._members:
            if old in members:
                members.remove(old)
                members.add(new)

    def become(self, other: Sets) -> None:
        """Adopts another branch's members."""
        self.pool, self.active, self.pins = map(set, other._members)

    def pop_changes(self) -> SetChanges:
        # What was done and undone in between is no change.
        deltas = map(Delta.between, self._recorded, self._members)
        self._recorded = tuple(map(set, self._members))
        return SetChanges(*deltas)

    def replay(self, changes: SetChanges) -> None:
        deltas = (changes.pool, changes.active, changes.pinned)
        for members, recorded, delta in zip(self._members, self._recorded, deltas, strict=True):
            for each in (members, recorded):
                each.update(delta.added)
                each.difference_update(delta.removed)
