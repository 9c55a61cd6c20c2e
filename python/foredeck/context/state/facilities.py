"""What a session has beside its chat, and the hooks that it hangs on.

A part has a hook if it has the methods of its protocol, so nothing here or above names a feature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from foredeck.context.head import HeadSection

StandInKind = Literal["observation", "reflection"]

Part = TypeVar("Part")
TurnFields = Callable[[], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class StandIn:
    """A text that replaces all messages it covers, or none."""

    id: str
    """Id of the stored object."""
    kind: StandInKind
    covers: tuple[str, ...]
    """Message addresses, in order."""
    text: str
    task: str = ""
    """The work at its end; empty if not noted."""
    suggestion: str = ""


@runtime_checkable
class StandIns(Protocol):
    """A session's stand-ins, on all branches."""

    def known(self) -> Sequence[StandIn]:
        """All of them, oldest first. Called at every model call, so it must not block."""
        ...

    def is_due(self, chat_tokens: int, standing_tokens: int) -> bool:
        """Whether more chat may be replaced; not asked when the prompt does not fit.

        `chat_tokens`: not replaced yet; `standing_tokens`: the stand-ins in place.
        """
        ...


@runtime_checkable
class LineSource(Protocol):
    def take_lines(self) -> Sequence[str]:
        """What the model is told once, on the newest message."""
        ...


@runtime_checkable
class TurnMarker(Protocol):
    def turn_fields(self) -> Mapping[str, Any]:
        """Fields of a new turn's document. Asked at each answer of the model; never raises."""
        ...


@runtime_checkable
class Heir(Protocol):
    def inherit(self) -> None:
        """Puts what a fork has of its parent into the transaction of its first call.

        Asked at each call, when the new messages have joined the plan.
        """
        ...


@dataclass(frozen=True)
class ContextFacilities:
    parts: Sequence[object] = ()
    """Sections in the order of the head; of stand-ins the first count."""

    @cached_property
    def sections(self) -> Sequence[HeadSection]:
        """Writers of the head, in its order."""
        return [part for part in self.parts if isinstance(part, HeadSection)]

    @cached_property
    def stand_ins(self) -> StandIns | None:
        return next((part for part in self.parts if isinstance(part, StandIns)), None)

    @cached_property
    def line_sources(self) -> Sequence[LineSource]:
        return [part for part in self.parts if isinstance(part, LineSource)]

    @cached_property
    def _turn_markers(self) -> Sequence[TurnMarker]:
        return [part for part in self.parts if isinstance(part, TurnMarker)]

    @cached_property
    def _heirs(self) -> Sequence[Heir]:
        return [part for part in self.parts if isinstance(part, Heir)]

    def turn_fields(self) -> dict[str, Any]:
        return {name: value for p in self._turn_markers for name, value in p.turn_fields().items()}

    def inherit(self) -> None:
        for part in self._heirs:
            part.inherit()

    def part(self, kind: type[Part]) -> Part | None:
        """The part of this class; None if it is off."""
        return next((part for part in self.parts if isinstance(part, kind)), None)
