"""One recorded session on a real engine in this process, call by call, and what it cost there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from foredeck.accounting.account import Account, AccountingMethod
from foredeck.accounting.bookkeeping import account_of
from foredeck.accounting.figure import CostFigure, figure_of
from foredeck.accounting.shapes import Shapes
from foredeck.accounting.stored import StoredCalls
from foredeck.context.messages.shape import Message, to_usage
from foredeck.engine.engine import Engine
from foredeck.engine.opened import Facilities, FacilityInputs, MakeFacilities, configured_facilities
from foredeck.histories.recordings import load_recording
from foredeck.histories.records import Compaction, RecordedCall, Transcript
from foredeck.hosts.protocol import AssembleParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.call_values import CHARS_PER_TOKEN, Decision
from foredeck.model.calls import CallRecord
from foredeck.model.own_tools import definition_chars
from foredeck.model.records import call_id
from foredeck.replay.observing import ReplayObserver
from foredeck.replay.options import ReplayOptions, list_price, load_cost, load_prices
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.recorded import RecordedSource
from foredeck.sources.snapshots import FileSource
from foredeck.store.kind import open_store, store_kind
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
        self._cost = load_cost(options.prices)
        self._host = SimulatedHost(transcript.id)
        if head_tokens:
            chars = int(head_tokens * CHARS_PER_TOKEN) + definition_chars(*options.tools)
            self._host.system = [{"role": "system", "content": "." * chars}]
        self.observer: ReplayObserver | None = None
        """What observes the session; None where nothing does."""
        if options.config(home).observations != "off":
            self.observer = ReplayObserver(load_prices(options.prices), options.observes)

    def call(self, call: RecordedCall) -> tuple[list[Message], Decision]:
        """One recorded call: the messages that would have gone out, and what was decided."""
        engine = self.engine or self._start()
        host = self._host
        new = self._transcript.messages[len(host.messages) : call.seen]
        host.add(*(r.message for r in new), entries=[r.entry for r in new])
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
    return RecordedSource(store, FilesystemMap(REPLAY_FILESYSTEM, [], cwd=cwd))


# On a private store


class RecordedFigure(NamedTuple):
    """One recorded session: its id and folder, when its last call was, and what it cost."""

    session: str
    folder: str
    last_ms: int
    figure: CostFigure


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
        head = self.store.head(call_id(self.transcript.id, len(self.transcript.calls)))
        return replay_figure(
            None if head is None else CallRecord(head.fields), self.rate, self.asked
        )


@contextmanager
def replayed(
    transcript: Transcript,
    options: ReplayOptions | None = None,
    advance: Callable[[], None] = lambda: None,
) -> Iterator[Replayed]:
    """Replay a recorded session on a store that is gone afterwards; `advance` is called after every
    call. Raises `PriceError` or `ConfigError`."""
    options = options or ReplayOptions()
    rate = calibrate(transcript)
    with tempfile.TemporaryDirectory(prefix="foredeck-replay-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        head = rate.head_tokens
        asked = replay_into(home, transcript, options, lambda *_: advance(), head_tokens=head)
        with closing(open_store(options.config(home))) as store:
            yield Replayed(store, transcript, rate, asked)


def recorded_account(
    transcript: Transcript, options: ReplayOptions, advance: Callable[[], None]
) -> Account:
    """The account of a recorded session, as `replayed` has it. The provider's figures are those of
    the recording."""
    with replayed(transcript, options, advance) as done:
        calls = [
            replace(stored, usage=to_usage(transcript.messages[call.seen].message.get("usage")))
            for stored, call in zip(
                StoredCalls(done.store, transcript.id), transcript.calls, strict=True
            )
        ]
        rate = done.rate.chars_per_token
        method = AccountingMethod(options.cache, options.ttl_s, rate, "plain")
        return account_of(calls, method, done.figure())


def recorded_figure(path: Path) -> RecordedFigure:
    """What a recorded session would have cost with foredeck, beside plain Pi. Nothing is stored.
    Raises `TranscriptError`."""
    transcript = load_recording(path)
    calls = transcript.calls
    last_ms = calls[-1].time_ms if calls else 0
    found = partial(RecordedFigure, transcript.id, transcript.cwd or "", last_ms)
    if not calls:
        return found(CostFigure())
    with replayed(transcript) as done:
        return found(done.figure())


def replay_figure(record: CallRecord | None, rate: Calibration, asked: float) -> CostFigure:
    """The figure of a replay, whose tokens were counted by the default rate. `asked`: what asking
    for observations would have cost, by the same rate; it is charged to the last model."""
    scale = CHARS_PER_TOKEN / rate.chars_per_token
    rows = () if record is None else record.spent or ()
    scaled = [
        row._replace(price=list_price(row.model), plain=row.plain * scale, ours=row.ours * scale)
        for row in rows
    ]
    figure = figure_of(scaled, is_estimate=True)
    own = asked * scale * (scaled[-1].price / 1_000_000 if figure.in_money and scaled else 1.0)
    return replace(figure, ours=figure.ours + own, questions=own)


AfterCall = Callable[[int, RecordedCall, list[Message]], object]
"""Called after each call, with its number, from 1, and the prompt that would have gone out."""


def replay_into(
    home: Path,
    transcript: Transcript,
    options: ReplayOptions,
    after: AfterCall,
    *,
    head_tokens: float = 0.0,
) -> float:
    """Replay a recorded session on the store in `home`.

    `head_tokens`: of what came before its messages. Returns what asking a model for observations
    would have cost, in tokens of uncached input.
    """
    every = options.restart_every
    with closing(ReplayedSession(home, transcript, options, head_tokens=head_tokens)) as session:
        for number, call in enumerate(transcript.calls, start=1):
            if every is not None and number > 1 and (number - 1) % every == 0:
                session.restart()
            prompt, _ = session.call(call)
            after(number, call, prompt)
        return 0.0 if session.observer is None else session.observer.bill.cost


# Plain Pi's side: what the host alone would have sent, and the tokens that its provider counted


MIN_POINTS = 5
"""Fewer calls with usage say nothing of a rate."""

PLAUSIBLE = (1.0, 8.0)
"""Characters per token that a tokenizer can come to; other usage was not of these prompts."""

_INPUT = ("input", "cacheRead", "cacheWrite")


@dataclass(frozen=True, slots=True)
class Calibration:
    """`head_tokens`: of what comes before the messages (system prompt, tools)."""

    chars_per_token: float = CHARS_PER_TOKEN
    head_tokens: float = 0.0


def calibrate(transcript: Transcript) -> Calibration:
    """Fit reported input tokens against the characters of the prompts as the host sent them.

    A least-squares line; where that has no sensible slope or a negative head, the plain ratio.
    The default where the recording reports too little.
    """
    shapes = Shapes()
    points = [
        (float(sum(shape.chars for shape in shapes.of(prompt))), tokens)
        for call, prompt in zip(
            transcript.calls, plain_prompts(transcript, transcript.compactions), strict=True
        )
        if (tokens := _reported(transcript.messages[call.seen].message)) > 0
    ]
    if len(points) < MIN_POINTS:
        return Calibration()
    return _fit(points)


def _fit(points: list[tuple[float, float]]) -> Calibration:
    mean_x = _mean(x for x, _ in points)
    mean_y = _mean(y for _, y in points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if not mean_x or not spread:
        return Calibration()
    # The least-squares line.
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    head = mean_y - slope * mean_x
    if slope <= 0 or head < 0:
        # Prompts that hardly grow give no line: all of the tokens are taken to be messages'.
        slope, head = mean_y / mean_x, 0.0
    if not PLAUSIBLE[0] <= 1 / slope <= PLAUSIBLE[1]:
        return Calibration()
    return Calibration(1 / slope, head)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def _reported(message: Message) -> float:
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return 0.0
    return float(sum(v for name in _INPUT if isinstance(v := usage.get(name), int | float)))


def plain_prompts(transcript: Transcript, compactions: list[Compaction]) -> Iterator[list[Message]]:
    """What Pi alone would have sent at each call, given the compactions in their order."""
    messages = [recorded.message for recorded in transcript.messages]
    summaries = [_summary(compaction) for compaction in compactions]
    for call in transcript.calls:
        number = sum(1 for compaction in compactions if compaction.seen <= call.seen)
        if not number:
            yield messages[: call.seen]
            continue
        kept = compactions[number - 1].kept_from
        yield [summaries[number - 1], *messages[kept : call.seen]]


def _summary(compaction: Compaction) -> Message:
    return {"role": "compactionSummary", "summary": compaction.summary}
