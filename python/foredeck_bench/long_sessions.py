"""Sessions that grow in this process, and histories, files and stores larger than most."""

from __future__ import annotations

import gc
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from foredeck.config import Config
from foredeck.config.sections import SourcesSection
from foredeck.context.calls import deciding
from foredeck.context.digests import DigestSize, digest
from foredeck.context.messages.shape import Message
from foredeck.engine.engine import Engine
from foredeck.hosts.host import Host
from foredeck.hosts.protocol import ToolObservedParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.documents import Provenance, SessionDocument, chat_id, session_object_id
from foredeck.store.place import open_store
from foredeck.store.protocol import Batch, Origin, Token
from foredeck.store.store import Store
from foredeck_bench.engine_process import EngineProcess
from foredeck_bench.figures import Figure, peak_mb_of, timing, used_seconds
from foredeck_bench.work_session import Step, WorkSession, transcript_line, work_host

DIGEST_CHARS = 50_000
DIGESTS = 40


class TimedPolicy:
    """Measures how long policies take, uses included."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._ask: Callable[..., Any] = vars(deciding)["run_policy"]
        vars(deciding)["run_policy"] = self._timed

    def close(self) -> None:
        """Stop measuring."""
        vars(deciding)["run_policy"] = self._ask

    def _timed(self, *args: Any, **options: Any) -> Any:
        began = time.perf_counter()
        try:
            return self._ask(*args, **options)
        finally:
            self.seconds += time.perf_counter() - began


def digest_figures() -> Iterator[Figure]:
    for kind, tool, line in (
        ("file", "read", "    def handle_{0}(self, value_{0}: int) -> Result:  # see {1}\n"),
        ("search", "grep", "src/part_{1}/module_{1}.ts:{0}: const value = parseIndex({0});\n"),
        ("log", "bash", "PASS tests/unit/test_{1}.py::test_case_{0} in 0.{1}s\n"),
    ):
        text = "".join(line.format(n, n % 97) for n in range(2000))[:DIGEST_CHARS]
        times = []
        for _ in range(DIGESTS):
            began = time.perf_counter()
            digest(tool, {"path": "a.py"}, text, held=frozenset(), size=DigestSize())
            times.append(time.perf_counter() - began)
        yield timing(f"digest_{kind}", f"the digest of a {kind} of 50 KB", times, 2)


LENGTHS = (50, 500, 2000)
"""Tool calls at which assembly is measured."""
WINDOW = 100
"""Last calls before each length that are measured."""
RESUMED_CALLS = 1000
RESUMES = 5
DAY_MS = 86_400_000
UNWATCHED = SourcesSection(watch=False)
"""Nobody else changes the files."""


Clock = Callable[[], float]
"""Seconds; `time.process_time` for sessions that take minutes."""


class TimedStore:
    """A store that notes each commit's seconds."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.commits: list[float] = []

    def commit(self, batch: Batch, *, origin: Origin | None = None) -> Token:
        began = time.perf_counter()
        token = self._store.commit(batch, origin=origin)
        self.commits.append(time.perf_counter() - began)
        return token

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@dataclass(slots=True)
class Growth:
    """Seconds by call, from 0; bytes by length."""

    assemble: list[float] = field(default_factory=list)
    observe: list[float] = field(default_factory=list)
    commit: list[float] = field(default_factory=list)
    policy: list[float] = field(default_factory=list)
    resume: list[float] = field(default_factory=list)
    store_bytes: dict[int, int] = field(default_factory=dict)
    transcript_bytes: dict[int, int] = field(default_factory=dict)

    def last(self, values: list[float], length: int) -> list[float]:
        """Values of the last calls before `length`."""
        return values[max(length // 2, length - WINDOW) : length]


def grow(
    folder: Path,
    advance: Callable[[int], None],
    lengths: tuple[int, ...] = LENGTHS,
    *,
    resumed_at: int = RESUMED_CALLS,
    clock: Clock = time.perf_counter,
) -> Growth:
    """Grows a session to the greatest of `lengths`, measured on the way."""
    growth = Growth()
    work = WorkSession(folder / "work")
    home, messages = folder / "home", list[Message]()
    position = 0
    for length in sorted({*lengths, min(resumed_at, max(lengths))}):
        config = Config(home=home, sources=UNWATCHED)
        host = work_host(work.id, messages)
        with closing(_Run(config, work, host, growth, clock)) as run:
            for step in work.steps(length - position):
                run.step(step)
                advance(1)
        position, messages = length, host.messages
        growth.store_bytes[length] = folder_bytes(home)
        growth.transcript_bytes[length] = work.transcript_bytes
        if length == resumed_at:
            _measure_resumes(growth, folder, work, messages, clock)
    return growth


class _Run:
    """One engine's part of the session."""

    def __init__(
        self, config: Config, work: WorkSession, host: SimulatedHost, growth: Growth, clock: Clock
    ) -> None:
        self._clock = clock
        self._store = TimedStore(open_store(config))
        self._put_off: list[Callable[[], object]] = []
        store = cast("Store", self._store)
        self._engine = Engine(config, Host(call_soon=self._put_off.append), store=store)
        self._policy = TimedPolicy()
        self._host = host
        self._growth = growth
        self._engine.open_session(host.opening(str(work.folder), "resume"))

    def close(self) -> None:
        self._policy.close()
        self._engine.close()

    def step(self, step: Step) -> None:
        began = self._clock()
        for event in step.observed:
            self._engine.tool_observed(
                ToolObservedParams.model_validate({"session": self._host.session, **event})
            )
        self._growth.observe.append(self._clock() - began)
        self._host.add(*step.messages)
        request = self._host.request(step.time_ms)
        self._store.commits.clear()
        self._policy.seconds = 0.0
        began = self._clock()
        answer = self._engine.assemble(request)
        self._growth.assemble.append(self._clock() - began)
        self._growth.commit.append(sum(self._store.commits))
        self._growth.policy.append(self._policy.seconds)
        self._host.accept(answer)
        # What an engine does while the model thinks.
        for work in self._put_off:
            work()
        self._put_off.clear()


def _measure_resumes(
    growth: Growth, folder: Path, work: WorkSession, messages: list[Message], clock: Clock
) -> None:
    gc.collect()
    gc.freeze()  # as the engine does at its start: what is here already is not its to look at
    for number in range(RESUMES):
        home = folder / f"resumed-{number}"
        shutil.copytree(folder / "home", home)
        first = _first_call(home, work, messages, clock)
        growth.resume.append(first.opened + first.assembled)
        shutil.rmtree(home, ignore_errors=True)
    gc.unfreeze()


@dataclass(frozen=True, slots=True)
class _FirstCall:
    """Seconds of an engine's first call, a day later; `taken_in`: the history ahead of it."""

    opened: float
    taken_in: float
    assembled: float


def _first_call(
    home: Path, work: WorkSession, messages: list[Message], clock: Clock, *, ahead: bool = False
) -> _FirstCall:
    put_off: list[Callable[[], object]] = []  # until the model thinks: nobody waits for it
    time_ms = work.time_ms + DAY_MS
    question = {"role": "user", "content": [{"type": "text", "text": "Go on."}]}
    host, began = work_host(work.id, messages), clock()
    with closing(
        Engine(Config(home=home, sources=UNWATCHED), Host(call_soon=put_off.append))
    ) as engine:
        engine.open_session(host.opening(str(work.folder), "resume"))
        opened = clock()
        if ahead:
            host.hold(engine.take_history(host.history()))
        taken_in = clock()
        host.add({**question, "timestamp": time_ms})
        engine.assemble(host.request(time_ms))
        return _FirstCall(opened - began, taken_in - opened, clock() - taken_in)


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


MESSAGES = 5_000
SCALE = 0.41
"""Gives 6 MB in Pi's session file."""
RUNS = 3

Advance = Callable[[str], None]


def history_figures(
    folder: Path, advance: Advance, messages: int = MESSAGES, runs: int = RUNS
) -> Iterator[Figure]:
    """Taking in a session at its opening, and its first call a day later."""
    work = WorkSession(folder / "work", scale=SCALE)
    history: list[Message] = []
    while len(history) < messages:
        history += next(work.steps(1)).messages
    calls = []
    for number in range(runs):
        advance("a history that is new here")
        home = folder / f"ahead-{number}"
        calls.append(_first_call(home, work, history, time.process_time, ahead=True))
    alone = _first_call(folder / "alone", work, history, time.process_time)
    size = {"messages": len(history), "bytes": work.transcript_bytes}
    text = f"a history of {len(history):,} messages that is new here: taken in, processor time"
    yield timing("history", text, [each.taken_in for each in calls], 2000, **size)
    text = "the first call after it, processor time"
    yield timing("history_call", text, [each.assembled for each in calls])
    text = "a first call that brings it itself, processor time"
    yield timing("history_alone", text, [alone.assembled])


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
