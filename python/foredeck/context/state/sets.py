"""What of a branch's objects is listed, in view, and to be kept in view: pool, active, pinned.

These are subsets of the session's index that belong to one branch. Members are handles (ordinals).
Call records keep the changes, never the sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from foredeck.model.call_values import Delta, SetChanges


@dataclass(slots=True)
class Sets:
    """Pinned is within active, active within pool: after every method, whatever the order."""

    pool: set[int] = field(default_factory=set)
    active: set[int] = field(default_factory=set)
    # A pin outlives the content: where that leaves the prompt, since it does not fit or its message
    # has left the list, the object waits, and is pinned again as soon as it is active.
    pins: set[int] = field(default_factory=set)
    """Objects that the user or the model has pinned, in view or not."""
    _recorded: tuple[set[int], ...] = field(init=False)
    """The members as the call records have them."""

    def __post_init__(self) -> None:
        self._recorded = tuple(map(set, self._members))

    @property
    def _members(self) -> tuple[set[int], set[int], set[int]]:
        """In the order of `SetChanges`."""
        return self.pool, self.active, self.pins

    @property
    def pinned(self) -> AbstractSet[int]:
        """Pinned objects that are in view."""
        return self.pins & self.active

    @property
    def waiting(self) -> AbstractSet[int]:
        """Pinned objects that are out of view."""
        return self.pins - self.active

    def innermost(self, ordinal: int) -> str:
        """What a user reads of an object's place: `pinned`, `waiting` (pinned, but out of view),
        `active`, `inactive` (in the pool), or `indexed`."""
        if ordinal in self.pins:
            return "pinned" if ordinal in self.active else "waiting"
        if ordinal in self.active:
            return "active"
        return "inactive" if ordinal in self.pool else "indexed"

    def show(self, ordinal: int) -> None:
        """Put an object into the metadata pool."""
        self.pool.add(ordinal)

    def activate(self, ordinal: int) -> None:
        """Make an object active; it joins the pool, too."""
        self.pool.add(ordinal)
        self.active.add(ordinal)

    def deactivate(self, ordinal: int) -> None:
        """Make an object inactive, or take an inactive one out of the pool. Unpins it."""
        self.pins.discard(ordinal)
        (self.active if ordinal in self.active else self.pool).discard(ordinal)

    def expire(self, ordinal: int) -> None:
        """Make an object inactive though neither user nor model has asked for it. Unlike after
        `deactivate` it stays in the pool, and a pinned one waits."""
        self.active.discard(ordinal)

    def pin(self, ordinal: int) -> None:
        """Activate an object, and keep it from expiring for as long as it fits."""
        self.activate(ordinal)
        self.pins.add(ordinal)

    def unpin(self, ordinal: int) -> None:
        """Let an object expire like any other; an active one stays active for now."""
        self.pins.discard(ordinal)

    def apply(self, decision: Mapping[str, Any]) -> None:
        """Change the sets as a context tool has decided."""
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
        """Let another object take the place of this one in all sets that it is in."""
        for members in self._members:
            if old in members:
                members.remove(old)
                members.add(new)

    def become(self, other: Sets) -> None:
        """Take over the members of another branch's sets, as changes of this one."""
        self.pool, self.active, self.pins = map(set, other._members)

    def pop_changes(self) -> SetChanges:
        """Net changes since the last call; from here on there are none."""
        # What was done and undone in between is no change.
        deltas = map(Delta.between, self._recorded, self._members)
        self._recorded = tuple(map(set, self._members))
        return SetChanges(*deltas)

    def replay(self, changes: SetChanges) -> None:
        """Apply recorded changes, without recording them again."""
        deltas = (changes.pool, changes.active, changes.pinned)
        for members, recorded, delta in zip(self._members, self._recorded, deltas, strict=True):
            for each in (members, recorded):
                each.update(delta.added)
                each.difference_update(delta.removed)
