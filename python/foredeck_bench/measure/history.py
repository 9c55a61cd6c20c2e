"""A history that is new here: how long taking it in keeps the processor, and the first call after.

Both are processor time of an engine in this process: other programs on the machine would make the
wait longer, not the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from foredeck.config import Config
from foredeck.config.sections import SourcesSection
from foredeck.context.messages.shape import Message
from foredeck.engine.engine import Engine
from foredeck.hosts.host import Host
from foredeck_bench.figures import Figure, timing
from foredeck_bench.work_session import WorkSession, work_host

MESSAGES = 5_000
SCALE = 0.41
"""So that they are 6 MB in Pi's session file."""
RUNS = 3
DAY_MS = 86_400_000

Advance = Callable[[str], None]
T = TypeVar("T")


def history_figures(
    folder: Path, advance: Advance, messages: int = MESSAGES, runs: int = RUNS
) -> Iterator[Figure]:
    """Taking in a session of so many messages when it opens, and its first call a day later; the
    same call where it has to bring the history itself."""
    work = WorkSession(folder / "work", scale=SCALE)
    held: list[Message] = []
    while len(held) < messages:
        held += next(work.steps(1)).messages
    taken, ahead, alone = list[float](), list[float](), list[float]()
    for number in range(runs):
        advance("a history that is new here")
        spent = _first_call(folder / f"ahead-{number}", work, held, ahead=True)
        taken.append(spent[0])
        ahead.append(spent[1])
    alone.append(_first_call(folder / "alone", work, held, ahead=False)[1])
    size = {"messages": len(held), "bytes": work.transcript_bytes}
    what = f"a history of {len(held):,} messages that is new here"
    yield timing("history", f"{what}: taken in, processor time", taken, 2000, **size)
    yield timing("history_call", "the first call after it, processor time", ahead)
    yield timing("history_alone", "a first call that brings it itself, processor time", alone)


def _first_call(
    home: Path, work: WorkSession, held: list[Message], *, ahead: bool
) -> tuple[float, float]:
    """Seconds of the processor for the history and for the call."""
    host = work_host(work.id, held)
    put_off: list[Callable[[], object]] = []  # until the model thinks: nobody waits for it
    config = Config(home=home, sources=SourcesSection(watch=False))
    with closing(Engine(config, Host(call_soon=put_off.append))) as engine:
        engine.open_session(host.opening(str(work.folder), "resume"))
        spent = 0.0
        if ahead:
            spent, answer = _timed(lambda: engine.take_history(host.history()))
            host.hold(answer)
        time_ms = work.time_ms + DAY_MS
        asked = {"role": "user", "content": [{"type": "text", "text": "Go on."}]}
        host.add({**asked, "timestamp": time_ms})
        request = host.request(time_ms)
        return spent, _timed(lambda: engine.assemble(request))[0]


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    began = time.process_time()
    done = work()
    return time.process_time() - began, done
