"""One recorded session on a real engine in this process, call by call, and what it cost there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from foredeck.accounting.figure import CostFigure, figure_of
from foredeck.context.messages.shape import Message, tools_declared
from foredeck.context.rebase import prices_of
from foredeck.engine.engine import Engine
from foredeck.engine.opened import Facilities, FacilityInputs, MakeFacilities, configured_facilities
from foredeck.histories.recordings import load_recordings
from foredeck.histories.records import RecordedCall, Transcript
from foredeck.hosts.protocol import AssembleParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.call_values import CHARS_PER_TOKEN, Decision, ModelSpending
from foredeck.model.calls import CallRecord
from foredeck.model.own_tools import definition_chars, own_definitions
from foredeck.model.records import call_id
from foredeck.replay.as_model import ASSUMED_REASONING
from foredeck.replay.observing import ReplayObserver
from foredeck.replay.options import (
    Calibration,
    ReplayOptions,
    calibrate,
    list_price,
)
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.recorded import FileSource
from foredeck.store.kind import store_kind
from foredeck.store.protocol import Store

REPLAY_FILESYSTEM = "replay"


class ReplayedSession:
    """Asks an engine for every recorded call what the model would have seen.

    The engine is started at the first call, on the store in `home`.
    """

    def __init__(
        self,
        home: Path,
        transcript: Transcript,
        options: ReplayOptions,
        *,
        head_tokens: float = 0.0,
        facilities: MakeFacilities = configured_facilities,
    ) -> None:
        """`head_tokens`: how many came before the recorded messages; 0 if that is not known."""
        self.engine: Engine | None = None
        self.marker = ""
        """The tool call whose result carries one more cache marker in the newest prompt; empty
        for none."""
        self._home = home
        self._transcript = transcript
        self._options = options
        self._facilities = facilities
        self._cost = options.read_cost()
        self._host = SimulatedHost(transcript.id)
        if head_tokens:
            chars = int(head_tokens * CHARS_PER_TOKEN) + definition_chars(*options.tools)
            self._host.system = [{"role": "system", "content": "." * chars}]
        self._own_tools = own_definitions(*options.tools)
        self.observer: ReplayObserver | None = None
        """What observes the session; None where nothing does."""
        if options.config(home).observations != "off":
            self.observer = ReplayObserver(prices_of(self._cost), options.observes)

    def call(self, call: RecordedCall) -> tuple[list[Message], Decision]:
        """One recorded call: the messages that would have gone out, and what was decided."""
        engine = self.engine or self._start()
        host = self._host
        shown = self._transcript.shown_to(call)
        host.messages, host.entries = [r.message for r in shown], [r.entry for r in shown]
        if system := self._transcript.system_of(call):
            host.system, tools = system, tools_declared(system)
            names = {tool["name"] for tool in tools}
            host.tools = [*tools, *(own for own in self._own_tools if own["name"] not in names)]
        host.model = self._model(call)
        answer = engine.assemble(_without_usage(host.request(call.time_ms)))
        host.accept(answer)
        self.marker = answer["marker"] or ""
        decision = engine.decision
        if self.observer is not None and engine.opened is not None:
            self.observer.after_call(engine.opened.session)
        return host.prompt(), decision

    def restart(self) -> None:
        """Close the engine; the next call starts another on the same store."""
        self.close()
        self._host.replace_engine()

    def close(self) -> None:
        """Close the engine, if one runs."""
        if self.engine is not None:
            self.engine.close()
            self.engine = None

    def _observed(self, opening: FacilityInputs) -> Facilities:
        """The session's facilities, with what this replay's own observer notes."""
        made = self._facilities(opening)
        return replace(made, stand_ins=self.observer)

    def _model(self, call: RecordedCall) -> dict[str, Any]:
        return {
            "provider": call.provider,
            "id": call.model,
            "api": call.api,
            "contextWindow": self._options.window,
            "cost": self._cost,
            "promptCache": {"short": self._options.ttl_s},
            "assumedReasoning": ASSUMED_REASONING if self._options.as_model else 0,
        }

    def _start(self) -> Engine:
        config = self._options.config(self._home)
        # With no local copy in front of it, so that a replay shows what a database gives back.
        store = store_kind(config.store).open_whole(config)
        self.engine = Engine(
            config, recorded=recorded_source, store=store, facilities=self._observed
        )
        self.engine.open_session(self._host.opening(self._transcript.cwd or "/"))
        return self.engine


def _without_usage(request: AssembleParams) -> AssembleParams:
    """The provider's figures are of the prompts that were sent at the time, not of ours."""
    messages = [{k: v for k, v in m.items() if k != "usage"} for m in request.messages]
    return request.model_copy(update={"messages": messages})


def recorded_source(store: Store, cwd: str) -> FileSource:
    """Files as the recorded results show them; nothing of this machine's is read."""
    return FileSource(store, FilesystemMap(REPLAY_FILESYSTEM, [], cwd=cwd))


# On a private store


class RecordedFigure(NamedTuple):
    """One recorded session: its id and folder, when its first and last call were, and what each
    call cost, by the identity of its answer."""

    session: str
    folder: str
    first_ms: int
    last_ms: int
    calls: list[tuple[str, CostFigure]]


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recorded session on a private store, which is open."""

    store: Store
    transcript: Transcript
    rate: Calibration
    asked: float
    """What asking a model for observations would have cost, in tokens of uncached input."""

    def figure(self) -> CostFigure:
        """What the session would have cost with foredeck, beside plain Pi."""
        return self._figure(self._spent(len(self.transcript.calls)))

    def by_call(self) -> list[tuple[str, CostFigure]]:
        """What each of its calls would have, by the identity of its answer."""
        before: dict[str, ModelSpending] = {}
        found = []
        for number, call in enumerate(self.transcript.calls, start=1):
            spent = {row.model: row for row in self._spent(number)}
            added = [row.less(before.get(row.model)) for row in spent.values()]
            is_last = number == len(self.transcript.calls)
            found.append((call.identity, self._figure(added, asked=self.asked * is_last)))
            before = spent
        return found

    def _spent(self, call: int) -> Sequence[ModelSpending]:
        head = self.store.head(call_id(self.transcript.id, call))
        return () if head is None else CallRecord(head.fields).spent

    def _figure(self, rows: Sequence[ModelSpending], *, asked: float | None = None) -> CostFigure:
        # Tokens were counted by the default rate.
        scale = CHARS_PER_TOKEN / self.rate.chars_per_token
        scaled = [
            row._replace(
                price=list_price(row.model), plain=row.plain * scale, ours=row.ours * scale
            )
            for row in rows
        ]
        figure = figure_of(scaled, is_estimate=True)
        # What asking would have cost is charged to the last model.
        own = (self.asked if asked is None else asked) * scale
        own *= scaled[-1].price / 1_000_000 if figure.in_money and scaled else 1.0
        return replace(figure, ours=figure.ours + own, questions=own)


AfterCall = Callable[[int, RecordedCall, list[Message]], object]
"""Called after each call, with its number, from 1, and the prompt that would have gone out."""


@contextmanager
def replayed(
    transcript: Transcript,
    options: ReplayOptions | None = None,
    after: AfterCall = lambda *_: None,
    home: Path | None = None,
) -> Iterator[Replayed]:
    """Replay a recorded session on the store in `home`; without one on a store that is gone
    afterwards. Raises `ConfigError`."""
    if home is None:
        prefix = "foredeck-replay-"
        with (
            tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name,
            replayed(transcript, options, after, Path(name)) as done,
        ):
            yield done
        return
    options = options or ReplayOptions()
    rate, every = calibrate(transcript), options.restart_every
    with closing(
        ReplayedSession(home, transcript, options, head_tokens=rate.head_tokens)
    ) as session:
        for number, call in enumerate(transcript.calls, start=1):
            if every is not None and number > 1 and (number - 1) % every == 0:
                session.restart()
            prompt, _ = session.call(call)
            after(number, call, prompt)
    asked = 0.0 if session.observer is None else session.observer.bill.cost
    config = options.config(home)
    # Once the engine is closed: only then has all of it arrived in a database.
    with closing(store_kind(config.store).open_whole(config)) as store:
        yield Replayed(store, transcript, rate, asked)


def recorded_figures(path: Path) -> list[RecordedFigure]:
    """What the sessions of a file would have cost with foredeck, beside plain Pi. Nothing is
    stored. Raises `TranscriptError`."""
    return [_recorded_figure(transcript) for transcript in load_recordings(path, branches=True)]


def _recorded_figure(transcript: Transcript) -> RecordedFigure:
    times = [call.time_ms for call in transcript.calls] or [0]
    found = partial(RecordedFigure, transcript.id, transcript.cwd or "", times[0], times[-1])
    if not transcript.calls:
        return found([])
    with replayed(transcript) as done:
        return found(done.by_call())
