"""The shape of what a session has beside its chat; `facilities.py` makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from foredeck.config import Config
from foredeck.context.state.features import Features
from foredeck.context.state.opening import Session, SessionFolder
from foredeck.derived.layer import TimeBudget
from foredeck.engine.background.jobs import BackgroundWorker


class FacilityTool(Protocol):
    """One of the model's tools that are not the context tools."""

    @property
    def name(self) -> str:
        """As the model calls it: what `ts-shim/tools.json` has."""
        ...

    def run(self, input: Mapping[str, Any], call: str) -> str:
        """The text of the result. `input`: as the model wrote it, not checked against the
        definition. `call`: the host's id of the tool call.

        Raises `ToolError` with a text for the model that says what to do instead.
        """
        ...


@dataclass(frozen=True, slots=True)
class Facilities:
    """What one session has beside its chat."""

    features: Features = field(default_factory=Features)
    """What its calls and the context tools use of it."""
    tools: Mapping[str, FacilityTool] = field(default_factory=dict)
    """The model's other tools, by name."""
    workers: Sequence[BackgroundWorker] = ()
    """What works for it in the background."""


@dataclass(frozen=True, slots=True)
class FacilityInputs:
    """A session that is being opened. Facilities are made from it; each takes what it needs."""

    config: Config
    session: Session
    session_folder: SessionFolder
    layers_wait: TimeBudget
    """What is left of the time that the opening waits for layers."""


MakeFacilities = Callable[[FacilityInputs], Facilities]


def configured_facilities(opening: FacilityInputs) -> Facilities:
    """Those that are switched on for a session."""
    # Their modules load with the first session: an engine that waits for one starts without them.
    from foredeck.engine.facilities import make_facilities

    return make_facilities(opening)
