"""Recorded sessions replayed on a private store, and what each call would have cost."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from foredeck.accounting.figure import CostFigure, figure_of
from foredeck.context.messages.shape import Message
from foredeck.model.call_values import CHARS_PER_TOKEN, ModelSpending
from foredeck.model.calls import CallRecord
from foredeck.model.records import call_id
from foredeck.store.kind import open_store
from foredeck.store.store import Store
from foredeck_agents.histories.recordings import load_recordings
from foredeck_agents.histories.records import RecordedCall, Transcript
from foredeck_lab.replay.options import Calibration, ReplayOptions, calibrate
from foredeck_lab.replay.replayed_session import ReplayedSession
from foredeck_lab.replay.warming import WarmedSides, awaits_user


class RecordedFigure(NamedTuple):
    """A session's id and folder, times, and each call's cost by answer."""

    session: str
    folder: str
    first_ms: int
    last_ms: int
    calls: list[tuple[str, CostFigure]]


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


def recorded_figures(path: Path) -> list[RecordedFigure]:
    """What a file's sessions would have cost; stores nothing. Raises `TranscriptError`."""
    return [_recorded_figure(transcript) for transcript in load_recordings(path, branches=True)]


def _recorded_figure(transcript: Transcript) -> RecordedFigure:
    times = [call.time_ms for call in transcript.calls] or [0]
    figure_of = partial(RecordedFigure, transcript.id, transcript.cwd or "", times[0], times[-1])
    if not transcript.calls:
        return figure_of([])
    with replayed(transcript) as session_replayed:
        return figure_of(session_replayed.by_call())
