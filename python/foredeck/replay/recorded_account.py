"""A recorded session, replayed on a private store, and what it cost there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from foredeck.accounting.account import Account, AccountingMethod
from foredeck.accounting.bookkeeping import account_of
from foredeck.accounting.calibration import Calibration, calibrate
from foredeck.accounting.figure import CostFigure, figure_of
from foredeck.accounting.prices import list_price
from foredeck.accounting.stored import StoredCalls
from foredeck.context.messages.shape import Message, to_usage
from foredeck.histories.recordings import load_recording
from foredeck.histories.transcripts import RecordedCall, Transcript
from foredeck.model.call_values import CHARS_PER_TOKEN
from foredeck.model.calls import CallRecord
from foredeck.model.records import call_id
from foredeck.replay.options import ReplayOptions
from foredeck.replay.replayed_session import ReplayedSession
from foredeck.store.kind import open_store
from foredeck.store.protocol import Store


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
