"""The shape of what a session has beside its chat; `facilities.py` says which there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from foredeck.config import Config
from foredeck.context.head.section import HeadSection
from foredeck.context.state.session import Session
from foredeck.engine.background.jobs import BackgroundWorker


class FacilityTool(Protocol):
    """One of the model's tools that are not the context tools."""

    @property
    def name(self) -> str:
        """As the model calls it: what `ts-shim/tools.json` has."""
        ...

    def run(self, input: Mapping[str, Any], call: str) -> str:
        """The text of the result. `call`: the host's id of the tool call.

        Raises `ToolError` with a text for the model that says what to do instead.
        """
        ...


@dataclass(frozen=True, slots=True)
class Facilities:
    """Those of one session."""

    sections: Sequence[HeadSection] = ()
    tools: Mapping[str, FacilityTool] = field(default_factory=dict)
    """By name."""
    workers: Sequence[BackgroundWorker] = ()


MakeFacilities = Callable[[Config, Session], Facilities]


def configured_facilities(config: Config, session: Session) -> Facilities:
    """Those that are switched on for a session."""
    # Their modules load with the first session: an engine that waits for one starts without them.
    from foredeck.engine.facilities import make_facilities

    return make_facilities(config, session)
