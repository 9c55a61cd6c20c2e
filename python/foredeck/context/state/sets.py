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

RECORDED = ("pool", "active", "pins")
"""The sets that change, in the order of `SetChanges`."""


@dataclass(slots=True)
class Sets:
    """Pinned is within active, active within pool: after every method, whatever the order."""

    pool: set[int] = field(default_factory=set)
    active: set[int] = field(default_factory=set)
    # A pin outlives the content: where that leaves the prompt, since it does not fit or its message
    # has left the list, the object waits, and is pinned again as soon as it is active.
    pins: set[int] = field(default_factory=set)
    """Objects that the user or the model has pinned, in view or not."""
    _changes: dict[str, dict[int, bool]] = field(default_factory=dict)
    """By set and member since the last call: True where it was added, False where removed."""

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
        self._add("pool", ordinal)

    def activate(self, ordinal: int) -> None:
        """Make an object active; it joins the pool first."""
        self._add("pool", ordinal)
        self._add("active", ordinal)

    def deactivate(self, ordinal: int) -> None:
        """Make an object inactive, or take an inactive one out of the pool. Unpins it."""
        self._remove("pins", ordinal)
        if ordinal in self.active:
            self._remove("active", ordinal)
        else:
            self._remove("pool", ordinal)

    def expire(self, ordinal: int) -> None:
        """Make an object inactive though neither user nor model has asked for it. Unlike after
        `deactivate` it stays in the pool, and a pinned one waits."""
        self._remove("active", ordinal)

    def pin(self, ordinal: int) -> None:
        """Activate an object, and keep it from expiring for as long as it fits."""
        self.activate(ordinal)
        self._add("pins", ordinal)

    def unpin(self, ordinal: int) -> None:
        """Let an object expire like any other; an active one stays active for now."""
        self._remove("pins", ordinal)

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
        for name in RECORDED:
            if old in self._members(name):
                self._remove(name, old)
                self._add(name, new)

    def become(self, other: Sets) -> None:
        """Take over the members of another branch's sets, recording that as changes of this one."""
        for name in RECORDED:
            mine, theirs = self._members(name), other._members(name)
            for ordinal in sorted(mine - theirs):
                self._remove(name, ordinal)
            for ordinal in sorted(theirs - mine):
                self._add(name, ordinal)

    def pop_changes(self) -> SetChanges:
        """Net changes since the last call; from here on there are none."""
        changes, self._changes = self._changes, {}
        return SetChanges(*(Delta.of(changes.get(name, {})) for name in RECORDED))

    def replay(self, changes: SetChanges) -> None:
        """Apply recorded changes, without recording them again."""
        deltas = (changes.pool, changes.active, changes.pinned)
        for members, delta in zip((self.pool, self.active, self.pins), deltas, strict=True):
            members.update(delta.added)
            members.difference_update(delta.removed)

    def _members(self, name: str) -> set[int]:
        members: set[int] = getattr(self, name)
        return members

    def _add(self, name: str, ordinal: int) -> None:
        members = self._members(name)
        if ordinal not in members:
            members.add(ordinal)
            self._note(name, ordinal, added=True)

    def _remove(self, name: str, ordinal: int) -> None:
        members = self._members(name)
        if ordinal in members:
            members.discard(ordinal)
            self._note(name, ordinal, added=False)

    def _note(self, name: str, ordinal: int, *, added: bool) -> None:
        # What is done and undone between two calls is no change.
        changes = self._changes.setdefault(name, {})
        if changes.get(ordinal) is (not added):
            del changes[ordinal]
        else:
            changes[ordinal] = added
