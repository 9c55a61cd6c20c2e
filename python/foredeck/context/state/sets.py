"""A session's pool, active and pinned set, with the changes since the last call record.

The index itself never shrinks and lives elsewhere; these three are subsets of it (SSOT 3.1) and
belong to a branch. Members are handles (ordinals).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

NAMES = ("pool", "active", "pinned")


@dataclass(slots=True)
class Sets:
    """The three sets. Pinned is a subset of active, active of pool: every method keeps that."""

    pool: set[int] = field(default_factory=set)
    active: set[int] = field(default_factory=set)
    pinned: set[int] = field(default_factory=set)
    _changes: dict[str, dict[int, bool]] = field(default_factory=dict)

    def show(self, ordinal: int) -> None:
        """Put an object into the metadata pool."""
        self._add("pool", ordinal)

    def activate(self, ordinal: int) -> None:
        """Make an object active; it joins the pool first."""
        self._add("pool", ordinal)
        self._add("active", ordinal)

    def deactivate(self, ordinal: int) -> None:
        """Make an object inactive, or take an inactive one out of the pool. Unpins it."""
        self._remove("pinned", ordinal)
        if ordinal in self.active:
            self._remove("active", ordinal)
        else:
            self._remove("pool", ordinal)

    def expire(self, ordinal: int) -> None:
        """Auto-deactivation: as `deactivate`, but it never leaves the pool."""
        self._remove("active", ordinal)

    def pin(self, ordinal: int) -> None:
        """Activate and keep from auto-deactivation."""
        self.activate(ordinal)
        self._add("pinned", ordinal)

    def unpin(self, ordinal: int) -> None:
        """Leave an object active, but no longer exempt."""
        self._remove("pinned", ordinal)

    def become(self, other: Sets) -> None:
        """Have the members of another branch's sets, recording that as changes of this one."""
        for name in NAMES:
            mine, theirs = getattr(self, name), getattr(other, name)
            for ordinal in sorted(mine - theirs):
                self._remove(name, ordinal)
            for ordinal in sorted(theirs - mine):
                self._add(name, ordinal)

    def take_changes(self) -> dict[str, list[int]]:
        """Net changes since the last call, e.g. `{"active+": [3], "pinned-": [1]}`; then none."""
        taken: dict[str, list[int]] = {}
        for name, changes in self._changes.items():
            for sign, wanted in (("+", True), ("-", False)):
                ordinals = sorted(n for n, added in changes.items() if added is wanted)
                if ordinals:
                    taken[name + sign] = ordinals
        self._changes = {}
        return taken

    def replay(self, changes: Mapping[str, Sequence[int]]) -> None:
        """Apply recorded changes, without recording them again."""
        for name in NAMES:
            members: set[int] = getattr(self, name)
            members.update(changes.get(name + "+", ()))
            members.difference_update(changes.get(name + "-", ()))

    def _add(self, name: str, ordinal: int) -> None:
        members: set[int] = getattr(self, name)
        if ordinal not in members:
            members.add(ordinal)
            self._note(name, ordinal, added=True)

    def _remove(self, name: str, ordinal: int) -> None:
        members: set[int] = getattr(self, name)
        if ordinal in members:
            members.discard(ordinal)
            self._note(name, ordinal, added=False)

    def _note(self, name: str, ordinal: int, *, added: bool) -> None:
        changes = self._changes.setdefault(name, {})
        if changes.get(ordinal) is (not added):
            del changes[ordinal]
        else:
            changes[ordinal] = added
