"""Recorded sessions on an engine of their own, call by call, and what they would have cost."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foredeck.accounting.figure import CostFigure, figure_of
from foredeck.context.messages.shape import Message, tools_declared
from foredeck.context.state.facilities import Facilities, FacilityInputs, MakeFacilities
from foredeck.engine.engine import Engine
from foredeck.engine.opening import configured_facilities
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.call_values import CHARS_PER_TOKEN, Decision, ModelSpending
from foredeck.model.calls import CallRecord
from foredeck.model.own_tools import definition_chars, own_definitions
from foredeck.model.records import call_id
from foredeck.prices import Cost, prices, prices_paid
from foredeck.sources.recorded import recorded_source
from foredeck.store.place import open_store
from foredeck.store.store import Store
from foredeck_agents.histories.records import RecordedCall, Transcript
from foredeck_lab.replay.observing import ReplayObserver
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay.pi import (
    ASSUMED_REASONING,
    Calibration,
    WarmedSides,
    awaits_user,
    calibrate,
)


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
        transcript = options.by_model(transcript)
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
            self.observer = ReplayObserver(cost, options.observes)

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
        request = host.request(call.time_ms)
        # The provider's figures are of the prompts that were sent at the time, not of ours.
        new = [{k: v for k, v in m.items() if k != "usage"} for m in request.messages]
        changes = {"messages": new, "warmed_ms": warmed_ms or None}
        answer = engine.assemble(request.model_copy(update=changes))
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
        parts = self._facilities(opening).parts
        return Facilities(parts if self.observer is None else [self.observer, *parts])

    def _model(self, call: RecordedCall) -> dict[str, Any]:
        named = self._options.as_model or call
        return {
            "provider": named.provider,
            "id": named.model,
            "api": named.api,
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


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recorded session on a private, open store."""

    store: Store
    transcript: Transcript
    rate: Calibration
    asked: float
    """Asking for observations, in tokens of uncached input."""
    warmed: WarmedSides | None = None
    """What warming has done, if on."""

    def figure(self) -> CostFigure:
        """What the session would have cost with foredeck, beside plain Pi."""
        rows = self._spent(len(self.transcript.calls))
        figure, warmed = self._figure(rows), self.warmed
        if warmed is None or not rows:
            return figure
        # Only where one model has given all answers.
        price = rows[-1].price / 1_000_000 if figure.in_money else 1.0
        plain, ours = (
            figure.plain + warmed.plain.cost * price,
            figure.ours + warmed.ours.cost * price,
        )
        return replace(figure, plain=plain, ours=ours)

    def by_call(self) -> list[tuple[str, CostFigure]]:
        """The figure of each call, by its answer."""
        before: dict[tuple[str, float], ModelSpending] = {}
        figures = []
        for number, call in enumerate(self.transcript.calls, start=1):
            spent = {(row.model, row.price): row for row in self._spent(number)}
            # Not those of other models: without a price they would put this call into tokens.
            changed = (key for key, row in spent.items() if row != before.get(key))
            added = [spent[key].less(before.get(key)) for key in changed]
            is_last = number == len(self.transcript.calls)
            figures.append((call.identity, self._figure(added, asked=self.asked * is_last)))
            before = spent
        return figures

    def _spent(self, call: int) -> Sequence[ModelSpending]:
        head = self.store.head(call_id(self.transcript.id, call))
        return () if head is None else CallRecord(head.fields).spent

    def _figure(self, rows: Sequence[ModelSpending], *, asked: float | None = None) -> CostFigure:
        # Tokens were counted by the default rate.
        scale = CHARS_PER_TOKEN / self.rate.chars_per_token
        scaled = [row._replace(plain=row.plain * scale, ours=row.ours * scale) for row in rows]
        figure = figure_of(scaled, is_estimate=True)
        # What asking would have cost is charged to the last model.
        own = (self.asked if asked is None else asked) * scale
        own *= scaled[-1].price / 1_000_000 if figure.in_money and scaled else 1.0
        return replace(figure, ours=figure.ours + own, questions=own)


AfterCall = Callable[[int, RecordedCall, list[Message]], object]


@contextmanager
def replayed(
    transcript: Transcript,
    options: ReplayOptions | None = None,
    after: AfterCall = lambda *_: None,
    home: Path | None = None,
) -> Iterator[Replayed]:
    """Replays a session on the store in `home`, else a temporary one. Raises `ConfigError`."""
    if home is None:
        prefix = "foredeck-replay-"
        with (
            tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name,
            replayed(transcript, options, after, Path(name)) as session_replayed,
        ):
            yield session_replayed
        return
    options = options or ReplayOptions()
    rate, every, warmer = calibrate(transcript), options.restart_every, options.warmer()
    scale = CHARS_PER_TOKEN / rate.chars_per_token
    warmed = None if warmer is None else WarmedSides(warmer, scale)
    with closing(ReplayedSession(home, transcript, options, rate=rate)) as session:
        for number, call in enumerate(transcript.calls, start=1):
            if every is not None and number > 1 and (number - 1) % every == 0:
                session.restart()
            warmed_ms = (
                0
                if warmed is None
                else warmed.before(call.time_ms, idle=awaits_user(transcript, call))
            )
            prompt, _ = session.call(call, warmed_ms)
            if warmed is not None and session.record is not None:
                warmed.after(session.record)
            after(number, call, prompt)
    observer_cost = 0.0 if session.observer is None else session.observer.bill.cost
    config = options.config(home)
    with closing(open_store(config, lazy=True)) as store:
        yield Replayed(store, transcript, rate, observer_cost, warmed)
