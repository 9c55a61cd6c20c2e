"""Observations and reflections as they were stored, and which of them a branch may use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from foredeck.model.observations import (
    Level,
    MessagePart,
    NotedDocument,
    ObservationDocument,
    ReflectionDocument,
    Remark,
)
from foredeck.observations.chunks import Position
from foredeck.store.protocol import Head, Store, Token


@dataclass(frozen=True, slots=True)
class Recalled:
    """An observation or a reflection as it was stored; the fields as in its document.

    `text` is what the model reads of it, empty where the user has deleted it.
    """

    id: str
    token: Token
    session: str
    text: str
    fields: Mapping[str, Any]

    @property
    def remarks(self) -> list[Remark]:
        """What it says, one by one."""
        return [Remark.model_validate(remark) for remark in self.fields.get("remarks") or ()]

    @property
    def remark_times(self) -> list[int]:
        """When its remarks were made, in milliseconds."""
        return [int(remark["time_ms"]) for remark in self.fields.get("remarks") or ()]

    @property
    def tokens(self) -> int:
        """Of its text."""
        return int(self.fields.get("tokens") or 0)

    @property
    def task(self) -> str:
        """What the work was at its end; empty where that is not known."""
        return str(self.fields.get("current_task") or "")

    @property
    def suggestion(self) -> str:
        """What its author would do next; empty where that is not known."""
        return str(self.fields.get("suggestion") or "")

    @property
    def is_deleted(self) -> bool:
        """The user has deleted it. Nothing replaces an observation's messages then, which count
        as observed; what a reflection had replaced counts again."""
        return self.fields.get("text_hash") is None


@dataclass(frozen=True, slots=True)
class Observation(Recalled):
    """What was noted of a stretch of messages."""

    is_condensed: ClassVar[bool] = False

    @property
    def covers(self) -> list[str]:
        """Addresses of the messages that it covers, in their order."""
        return list(self.fields["covers"])

    @property
    def part(self) -> MessagePart | None:
        """The piece of a long message that it was made from."""
        part = self.fields.get("part")
        return None if part is None else MessagePart.model_validate(part)

    @property
    def covered_tokens(self) -> int:
        """Of the messages that it covers."""
        return int(self.fields.get("covered_tokens") or 0)


@dataclass(frozen=True, slots=True)
class Reflection(Recalled):
    """What replaces observations or earlier reflections."""

    is_condensed: ClassVar[bool] = True

    @property
    def level(self) -> Level:
        """Whether it condenses observations, or reflections."""
        level: Level = self.fields.get("level") or "reflection"
        return level

    @property
    def generation(self) -> int:
        """Its number along the branch."""
        return int(self.fields.get("generation") or 1)

    @property
    def replaces(self) -> list[str]:
        """Ids of what it replaces, in their order."""
        return list(self.fields["replaces"])

    @property
    def observations(self) -> list[str]:
        """Ids of all observations behind it."""
        return list(self.fields.get("observations") or ())


def load_observation(store: Store, head: Head) -> Observation:
    """The observation in a version."""
    text = _text_of(store, head, ObservationDocument)
    return Observation(head.id, head.token, str(head.fields["session"]), text, head.fields)


def load_reflection(store: Store, head: Head) -> Reflection:
    """The reflection in a version."""
    text = _text_of(store, head, ReflectionDocument)
    return Reflection(head.id, head.token, str(head.fields["session"]), text, head.fields)


def _text_of(store: Store, head: Head, kind: type[NotedDocument]) -> str:
    document = store.get(head.id, kind, head.token)
    return "" if document is None else document.content or ""


def observations_of(store: Store, sessions: Iterable[str]) -> list[Observation]:
    """All observations of these sessions, of all their branches: those of one session oldest
    first, the sessions in the order given."""
    return [
        load_observation(store, head)
        for session in sessions
        for head in store.query("observation", {"session": session})
    ]


def reflections_of(store: Store, sessions: Iterable[str]) -> list[Reflection]:
    """All reflections of these sessions, as `observations_of`."""
    return [
        load_reflection(store, head)
        for session in sessions
        for head in store.query("reflection", {"session": session})
    ]


@dataclass(frozen=True, slots=True)
class Placed:
    """An observation, and where on the branch the messages are that it covers: from `start` to
    before `end`. An empty span is that of a piece of a long message, which is at `start`."""

    observation: Observation
    start: int
    end: int


def on_branch(observations: Sequence[Observation], addresses: Sequence[str]) -> list[Placed]:
    """The observations that a branch may use, in the order of what they cover.

    One counts where all of its messages are on the branch, one after the other. So a branch sees
    only its own past, a message that the host has changed is observed anew, and what was summed
    up by the host no longer counts. Where two cover the same message, that which begins
    earlier counts, then that which comes first in `observations`: give a session's own before
    those of the sessions that it was forked from.
    """
    starts: dict[str, list[int]] = {}
    for index, address in enumerate(addresses):
        starts.setdefault(address, []).append(index)
    found = [placed for o in observations if (placed := _place(o, addresses, starts))]
    rank = {id(placed.observation): n for n, placed in enumerate(found)}
    found.sort(key=lambda p: (p.start, _first_char(p), rank[id(p.observation)]))
    chosen: list[Placed] = []
    reached = Position()
    for placed in found:
        first = _first_char(placed)
        is_next = placed.start == reached.messages and first == reached.chars
        if is_next or (placed.start > reached.messages and not first):
            chosen.append(placed)
            reached = _observed_up_to(placed)
    return chosen


def position_on(placed: Sequence[Placed]) -> Position:
    """How far a branch is observed, by what `on_branch` gives for it."""
    return _observed_up_to(placed[-1]) if placed else Position()


def _observed_up_to(placed: Placed) -> Position:
    part = placed.observation.part
    is_unfinished = part is not None and part.end < part.length
    return Position(placed.end, part.end if part is not None and is_unfinished else 0)


def _first_char(placed: Placed) -> int:
    part = placed.observation.part
    return 0 if part is None else part.start


def _place(
    observation: Observation, addresses: Sequence[str], starts: Mapping[str, Sequence[int]]
) -> Placed | None:
    covers, part = observation.covers, observation.part
    first = covers[0] if covers else part.address if part is not None else ""
    for start in starts.get(first, ()):
        if list(addresses[start : start + len(covers)]) == covers:
            return Placed(observation, start, start + len(covers))
    return None


@dataclass(frozen=True, slots=True)
class BranchLevels:
    """The notes of a branch, oldest first: reflections, then the observations that none of them
    replaces. `newest`: the reflection with the highest generation, None for none."""

    reflections: tuple[Reflection, ...] = ()
    observations: tuple[Observation, ...] = ()

    @property
    def standing(self) -> Sequence[Observation | Reflection]:
        """All of it, oldest first."""
        return (*self.reflections, *self.observations)

    @property
    def newest(self) -> Reflection | None:
        """The reflection that was made last."""
        return max(self.reflections, key=lambda r: r.generation, default=None)


def levels_on(placed: Sequence[Placed], reflections: Sequence[Reflection]) -> BranchLevels:
    """What is left of observations once reflections replace the oldest of them.

    A reflection counts where all that it replaces is on the branch and nothing of it was made
    for another one. Deleted ones do not count: what they had replaced counts again.
    """
    own = {p.observation.id for p in placed}
    usable = [
        r for r in reflections if not r.is_deleted and r.observations and own >= {*r.observations}
    ]
    usable.sort(key=lambda r: (r.generation, r.id))
    chosen: list[Reflection] = []
    taken: set[str] = set()
    for reflection in reversed(usable):
        if taken.isdisjoint(reflection.observations):
            chosen.append(reflection)
            taken.update(reflection.observations)
    order = {p.observation.id: n for n, p in enumerate(placed)}
    chosen.sort(key=lambda r: order[r.observations[0]])
    left = [p.observation for p in placed if p.observation.id not in taken]
    return BranchLevels(tuple(chosen), tuple(o for o in left if not o.is_deleted))


@dataclass(frozen=True, slots=True)
class ObservedBranch:
    """What was noted of a branch: what covers its messages, and what is left of that by level."""

    placed: Sequence[Placed]
    levels: BranchLevels

    @property
    def position(self) -> Position:
        """How far the branch is observed."""
        return position_on(self.placed)


def observed_branch(
    store: Store, sessions: Sequence[str], addresses: Sequence[str]
) -> ObservedBranch:
    """What these sessions have of the branch whose messages have these addresses. A session comes
    before those that it was forked from."""
    placed = on_branch(observations_of(store, sessions), addresses)
    return ObservedBranch(placed, levels_on(placed, reflections_of(store, sessions)))
