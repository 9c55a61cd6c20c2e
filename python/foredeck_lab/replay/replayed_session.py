"""One recorded session on a real engine, call by call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from foredeck.context.messages.shape import Message, tools_declared
from foredeck.context.rebase import prices_of
from foredeck.engine.engine import Engine
from foredeck.engine.opened import Facilities, FacilityInputs, MakeFacilities, configured_facilities
from foredeck.hosts.protocol import AssembleParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.call_values import CHARS_PER_TOKEN, Decision
from foredeck.model.calls import CallRecord
from foredeck.model.own_tools import definition_chars, own_definitions
from foredeck.prices import Cost, prices, prices_paid
from foredeck.sources.recorded import recorded_source
from foredeck.store.kind import open_store
from foredeck_agents.histories.records import RecordedCall, Transcript
from foredeck_lab.replay.as_model import ASSUMED_REASONING
from foredeck_lab.replay.observing import ReplayObserver
from foredeck_lab.replay.options import Calibration, ReplayOptions


class ReplayedSession:
    """Asks an engine for every recorded call what the model would have seen."""

    def __init__(
        self,
        home: Path,
        transcript: Transcript,
        options: ReplayOptions,
        *,
        rate: Calibration | None = None,
        facilities: MakeFacilities = configured_facilities,
    ) -> None:
        self.engine: Engine | None = None
        self.marker = ""
        self._home = home
        self._transcript = transcript
        self._options = options
        self._facilities = facilities
        self._cost = options.cost()
        self._paid = prices_paid(record.message for record in transcript.messages)
        self._host = SimulatedHost(transcript.id)
        self._rate = rate = rate or Calibration()
        if rate.head_tokens:
            chars = int(rate.head_tokens * rate.chars_per_token) + definition_chars(*options.tools)
            self._host.system = [{"role": "system", "content": "." * chars}]
        self._own_tools = own_definitions(*options.tools)
        self.observer: ReplayObserver | None = None
        """What observes the session, if anything."""
        if options.config(home).observations != "off":
            cost = self._cost_at(transcript.calls[0]) if transcript.calls else self._cost
            self.observer = ReplayObserver(prices_of(cost), options.observes)

    def call(self, call: RecordedCall, warmed_ms: int = 0) -> tuple[list[Message], Decision]:
        """The messages that would have gone out, and the decision. `warmed_ms`: when the cache was
        renewed."""
        engine = self.engine or self._start()
        host = self._host
        messages = self._transcript.shown_to(call)
        host.messages, host.entries = [r.message for r in messages], [r.entry for r in messages]
        if system := self._transcript.system_of(call):
            host.system, tools = system, tools_declared(system)
            names = {tool["name"] for tool in tools}
            host.tools = [*tools, *(own for own in self._own_tools if own["name"] not in names)]
        host.model = self._model(call)
        answer = engine.assemble(_request(host, call, warmed_ms))
        host.accept(answer)
        self.marker = answer["marker"] or ""
        decision = engine.decision
        if self.observer is not None and engine.opened is not None:
            self.observer.after_call(engine.opened.session)
        return host.prompt(), decision

    @property
    def record(self) -> CallRecord | None:
        opened = self.engine and self.engine.opened
        return opened.session.chat.newest_record if opened else None

    def restart(self) -> None:
        self.close()
        self._host.replace_engine()

    def close(self) -> None:
        """Close the engine, if one runs."""
        if self.engine is not None:
            self.engine.close()
            self.engine = None

    def _observed(self, opening: FacilityInputs) -> Facilities:
        facilities_made = self._facilities(opening)
        return replace(facilities_made, stand_ins=self.observer)

    def _model(self, call: RecordedCall) -> dict[str, Any]:
        return {
            "provider": call.provider,
            "id": call.model,
            "api": call.api,
            "contextWindow": self._window(),
            "cost": self._cost_at(call),
            "promptCache": {"short": self._options.ttl_s},
            "assumedReasoning": ASSUMED_REASONING if self._options.as_model else 0,
        }

    def _window(self) -> int | None:
        """The window in tokens as the engine counts them, which is told no usage."""
        window = self._options.window
        return window and int(window * self._rate.chars_per_token / CHARS_PER_TOKEN)

    def _cost_at(self, call: RecordedCall) -> Cost:
        if self._cost is not None:
            return self._cost
        paid = self._paid.get(call.name)
        if paid == {}:
            return {}
        return prices(call.model, call.provider, call.time_ms) or paid or {}

    def _start(self) -> Engine:
        config = self._options.config(self._home)
        self.engine = Engine(
            config, recorded=recorded_source, store=open_store(config), facilities=self._observed
        )
        self.engine.open_session(self._host.opening(self._transcript.cwd or "/"))
        return self.engine


def _request(host: SimulatedHost, call: RecordedCall, warmed_ms: int) -> AssembleParams:
    request = host.request(call.time_ms)
    # The provider's figures are of the prompts that were sent at the time, not of ours.
    messages = [{k: v for k, v in m.items() if k != "usage"} for m in request.messages]
    return request.model_copy(update={"messages": messages, "warmed_ms": warmed_ms or None})
