"""What a session has beside its chat, and the hooks that it hangs on.

A part has a hook if it has the methods of its protocol, so nothing here or above names a feature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

from foredeck.config import Config
from foredeck.context.head import HeadSection
from foredeck.context.state.session import Session, SessionFolder
from foredeck.derived.layer import TimeBudget

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


@runtime_checkable
class RecordReader(Protocol):
    def described(self, name: str) -> str | None:
        """A record without a handle, as `activate` shows it; None if the name means none."""
        ...


@dataclass(frozen=True)
class Facilities:
    parts: Sequence[object] = ()
    """Sections in the order of the head; of stand-ins the first count."""
    _by_hook: dict[type, Any] = field(default_factory=dict, init=False, compare=False)

    def on(self, hook: type[Part]) -> Sequence[Part]:
        """The parts on a hook, or of a class."""
        if hook not in self._by_hook:
            self._by_hook[hook] = [part for part in self.parts if isinstance(part, hook)]
        return cast("Sequence[Part]", self._by_hook[hook])

    def part(self, kind: type[Part]) -> Part | None:
        """The first of these; None if it is off."""
        return next(iter(self.on(kind)), None)

    @property
    def sections(self) -> Sequence[HeadSection]:
        return self.on(HeadSection)

    @property
    def stand_ins(self) -> StandIns | None:
        return self.part(StandIns)

    def turn_fields(self) -> dict[str, Any]:
        fields = [part.turn_fields() for part in self.on(TurnMarker)]
        return {name: value for each in fields for name, value in each.items()}


class FacilityInputs(NamedTuple):
    """What facilities are made from, as a session opens."""

    config: Config
    session: Session
    session_folder: SessionFolder
    layers_wait: TimeBudget
    """Time left for layers."""

    @classmethod
    def at_opening(
        cls, config: Config, session: Session, session_folder: SessionFolder
    ) -> FacilityInputs:
        return cls(config, session, session_folder, TimeBudget(config.opening_s))


MakeFacilities = Callable[[FacilityInputs], Facilities]
