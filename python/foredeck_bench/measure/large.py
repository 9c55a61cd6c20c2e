"""A new history, a session file and a store that are far larger than most, in processor time."""

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
from foredeck.model.documents import Provenance, SessionDocument, chat_id, session_object_id
from foredeck.store.kind import open_store
from foredeck.store.protocol import Batch
from foredeck_bench.engine_process import EngineProcess
from foredeck_bench.figures import Figure, peak_mb_of, timing, used_seconds
from foredeck_bench.work_session import WorkSession, transcript_line, work_host

MESSAGES = 5_000
SCALE = 0.41
"""Gives 6 MB in Pi's session file."""
RUNS = 3
DAY_MS = 86_400_000

Advance = Callable[[str], None]
T = TypeVar("T")


def history_figures(
    folder: Path, advance: Advance, messages: int = MESSAGES, runs: int = RUNS
) -> Iterator[Figure]:
    """Taking in a session at its opening, and its first call a day later."""
    work = WorkSession(folder / "work", scale=SCALE)
    history: list[Message] = []
    while len(history) < messages:
        history += next(work.steps(1)).messages
    times, ahead, alone = list[float](), list[float](), list[float]()
    for number in range(runs):
        advance("a history that is new here")
        spent = _first_call(folder / f"ahead-{number}", work, history, ahead=True)
        times.append(spent[0])
        ahead.append(spent[1])
    alone.append(_first_call(folder / "alone", work, history, ahead=False)[1])
    size = {"messages": len(history), "bytes": work.transcript_bytes}
    what = f"a history of {len(history):,} messages that is new here"
    yield timing("history", f"{what}: taken in, processor time", times, 2000, **size)
    yield timing("history_call", "the first call after it, processor time", ahead)
    yield timing("history_alone", "a first call that brings it itself, processor time", alone)


def _first_call(
    home: Path, work: WorkSession, held: list[Message], *, ahead: bool
) -> tuple[float, float]:
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
        question = {"role": "user", "content": [{"type": "text", "text": "Go on."}]}
        host.add({**question, "timestamp": time_ms})
        request = host.request(time_ms)
        return spent, _timed(lambda: engine.assemble(request))[0]


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


FILE_BYTES = 128_000_000
SESSIONS = 3_000


def large_figures(
    folder: Path, advance: Advance, size: int = FILE_BYTES, sessions: int = SESSIONS
) -> Iterator[Figure]:
    """Opening a session with a file of so many bytes, and one among so many sessions: processor
    time and memory."""
    folder.mkdir(parents=True)
    advance("a large session file")
    file = folder / "session.jsonl"
    _write(file, folder, size)
    yield from _opened("large_file", f"a session file of {size / 1e6:,.0f} MB", folder, file)
    file.unlink()
    advance("a store of many sessions")
    with closing(open_store(Config(home=folder / "home"))) as store:
        store.commit(Batch(puts=[_session(f"{n:08d}-none", n) for n in range(sessions)]))
    yield from _opened("many_sessions", f"a store of {sessions:,} sessions", folder, None)


def _session(id: str, number: int) -> SessionDocument:
    return SessionDocument(
        id=session_object_id(id),
        session_id=id,
        chat_ref=chat_id(id),
        system_prompt_ref="",
        cwd=f"/projects/{number % 40}",
        provenance=Provenance(origin="bench", generator="system"),
    ).seal()


def _write(file: Path, folder: Path, size: int) -> None:
    work = WorkSession(folder / "work")
    messages = [message for step in work.steps(200) for message in step.messages]
    lines = b"".join(transcript_line(message, n) for n, message in enumerate(messages, 1))
    with file.open("wb") as out:
        while out.tell() < size:
            out.write(lines)


def _opened(name: str, what: str, folder: Path, file: Path | None) -> Iterator[Figure]:
    with EngineProcess(folder / "home", folder) as engine:
        engine.initialize()
        before = used_seconds(engine.pid)
        engine.open(f"bench-{name}", file=file)
        after, peak = used_seconds(engine.pid), peak_mb_of(engine.pid)
    note = "this system does not tell"
    busy = None if before is None or after is None else round(1000 * (after - before), 1)
    memory = None if peak is None else round(peak, 1)
    text = f"{what}: a session opened, processor time"
    yield Figure(name, text, busy, "ms", 1000, "" if busy is not None else note)
    text = f"{what}: memory of its engine"
    yield Figure(f"{name}_memory", text, memory, "MB", 400, "" if memory is not None else note)
