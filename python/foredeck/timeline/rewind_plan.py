"""What rewinding to a call would do to each file. Pure: no disk, no store.

A file's state at a call is what the last change before that call left, on the branch that led to
it; or, before the first change of all, what that found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from foredeck.model.records import MISSING, UNKNOWN, PathState

Action = Literal["write", "create", "delete", "none", "impossible"]


@dataclass(frozen=True, slots=True)
class Event:
    """One change of one path; `change` is the id of what it is a part of."""

    path: str
    change: str
    before: PathState
    after: PathState
    imported: bool = False
    """Whether it came with a session that was imported: anybody may have written it."""


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What rewinding does to one path.

    `present`: what is there now, as the plan was made for it. `foreign`: it was changed by a
    person, another session or another program since the session last left it. `between`: that had
    happened earlier, after the call: what it was then is kept, but the file loses it.
    """

    path: str
    present: PathState
    target: PathState
    foreign: bool = False
    between: bool = False
    left: PathState = UNKNOWN
    """What the session has left there."""
    imported: bool = False
    """Whether what it would become was said by an imported session."""

    @property
    def action(self) -> Action:
        """In one word."""
        if self.present == self.target:
            return "none"
        if not self.target.can_be_restored or self.present.kind == "other":
            return "impossible"
        if self.target == MISSING:
            return "delete"
        return "create" if self.present == MISSING else "write"

    @property
    def needs_consent(self) -> bool:
        """Whether it would undo what others have done."""
        return self.action not in ("none", "impossible") and (self.foreign or self.between)


def plan_rewind(
    events: Iterable[Event], earlier: Collection[str], look: Callable[[str], PathState]
) -> list[FilePlan]:
    """The plan for each path that any event names, in the order of their names.

    `events`: all of the session and those that it was forked from, oldest first. `earlier`: the
    changes before the chosen call, on its branch. `look`: what is at a path now.
    """
    by_path: dict[str, list[Event]] = {}
    for event in events:
        by_path.setdefault(event.path, []).append(event)
    wanted = frozenset(earlier)
    return [_plan(path, by_path[path], wanted, look(path)) for path in sorted(by_path)]


def plan_undo(events: Iterable[Event], look: Callable[[str], PathState]) -> list[FilePlan]:
    """The plan that takes a rewinding back; `events`: those of that rewinding."""
    plans = []
    for event in sorted(events, key=lambda event: event.path):
        present, target = look(event.path), _harmless(event.before, event)
        foreign = present != event.after
        plans.append(FilePlan(event.path, present, target, foreign, imported=event.imported))
    return plans


def _plan(
    path: str, events: Sequence[Event], earlier: frozenset[str], present: PathState
) -> FilePlan:
    last = max((i for i, event in enumerate(events) if event.change in earlier), default=-1)
    said = events[max(last, 0)]
    target = _harmless(said.after if last >= 0 else said.before, said)
    later = events[last:] if last >= 0 else events
    left = events[-1].after
    return FilePlan(
        path,
        present,
        target,
        foreign=left == UNKNOWN or present != left,
        between=_has_gap(later),
        left=left,
        imported=said.imported,
    )


def _harmless(state: PathState, said: Event) -> PathState:
    """No record of others makes a program run as this user for others (setuid, setgid)."""
    if not said.imported or state.mode is None:
        return state
    return state.model_copy(update={"mode": state.mode & 0o777})


def _has_gap(events: Sequence[Event]) -> bool:
    """Whether something else has changed the path between two of these.

    A call finds what an earlier one has left, or found: calls of one answer run side by side.
    """
    known = {events[0].before, events[0].after}
    for event in events[1:]:
        if event.before not in known and UNKNOWN not in known:
            return True
        known |= {event.before, event.after}
    return False
