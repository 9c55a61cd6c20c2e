"""Rounds without Pi: one model call each, around which engine or node are killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from foredeck.context.messages.shape import Message
from foredeck.hosts.protocol import AssembleResult
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck_bench.crash import stores
from foredeck_bench.crash.engine import (
    AFTER_SEND,
    INSIDE,
    POINTS,
    RANDOM,
    SIGKILL,
    Fuse,
    KillPoint,
    kill_node,
)
from foredeck_bench.crash.stores import Tally, check_answered, check_records, check_results
from foredeck_bench.engine_process import EngineEnded, EngineFailed, EngineProcess
from foredeck_bench.scripted.pi_process import MARK, PATIENT, wait_for_end, with_environment
from foredeck_bench.work_session import Step, WorkSession, work_host

SESSION_ROUNDS = 50
"""Rounds that one session goes through before the next one begins."""
NODE_ROUNDS = 4
"""For kills of the node: an engine gives up after five."""
QUIET_STEPS = 2
"""Calls of a session before the first round, so that there is something to lose."""
RANDOM_S = 0.03
"""Latest random kill after the request, in seconds; a call takes 2 to 20 ms."""


@dataclass
class EngineRounds:
    """Runs sessions in `folder`, on the state folder `home`."""

    folder: Path
    home: Path
    store: str
    victim: str
    tally: Tally
    random: random.Random
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def run(self, rounds: int) -> None:
        most = NODE_ROUNDS if self.victim == "node" else SESSION_ROUNDS
        for number, start in enumerate(range(0, rounds, most)):
            self._session(number, min(most, rounds - start))

    def _session(self, number: int, rounds: int) -> None:
        expected = self._play(f"calm-{number}", number, rounds, kill=False)
        outcome = self._play(f"killed-{number}", number, rounds, kill=True)
        for step, (one, other) in enumerate(zip(expected, outcome, strict=True)):
            self.tally.compared["prompts"] += 1
            if one != other:
                where = difference(json.loads(other), json.loads(one))
                self.tally.fault("differing", f"session {number}, call {step + 1}, {where}")
        self._count_orphans()

    def _play(self, session: str, seed: int, rounds: int, *, kill: bool) -> list[bytes]:
        work_folder = self.folder / "work"
        shutil.rmtree(work_folder, ignore_errors=True)
        work_folder.mkdir(parents=True)
        work = WorkSession(work_folder, session, seed=seed)
        fuse = Fuse(self.folder / "fuse.json")
        program = ["-m", "foredeck_bench.crash.engine", str(self.folder / "fuse.json")]
        environment = {**PATIENT, **stores.settings(self.store), MARK: self.mark}
        host = ProcessHost(
            session,
            starter(self.home, work_folder, program, environment),
            self.tally.recovery_s.append,
            lambda text: self.tally.fault("refused_starts", text),
        )
        prompts: list[bytes] = []
        try:
            for step in work.steps(QUIET_STEPS + rounds):
                kills = kill and len(prompts) >= QUIET_STEPS
                prompts.append(self._round(host, step, fuse) if kills else host.step(step))
        finally:
            host.close()
        self._check(host, session, counts=kill)
        return prompts

    def _round(self, host: ProcessHost, step: Step, fuse: Fuse) -> bytes:
        point = self.random.choice((*POINTS, RANDOM))
        began = time.monotonic()
        prompt = host.step(step, lambda: self._aim(host, point, fuse))
        if self.victim == "node":
            self.tally.recovery_s.append(time.monotonic() - began)
        if fuse.is_left():
            self.tally.fault("unreached", point)
        if point == AFTER_SEND:
            self._kill(host)
        self.tally.killed_at(f"{self.victim} {point}")
        return prompt

    def _aim(self, host: ProcessHost, point: str, fuse: Fuse) -> threading.Timer | None:
        if point in INSIDE:
            node = str(self.home) if self.victim == "node" else None
            fuse.lay(KillPoint(point, engine=node is None, node=node))
        if point != RANDOM:
            return None
        timer = threading.Timer(self.random.uniform(0, RANDOM_S), self._kill, (host,))
        timer.start()
        return timer

    def _kill(self, host: ProcessHost) -> None:
        if self.victim == "node":
            kill_node(self.home)
        elif host.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(host.pid, SIGKILL)

    def _check(self, host: ProcessHost, session: str, *, counts: bool) -> None:
        tally = self.tally if counts else Tally()
        results = {
            message["toolCallId"]: message["content"][0]["text"]
            for message in host.host.messages
            if message["role"] == "toolResult"
        }
        with stores.opened(self.home, self.store) as store:
            tally.compared["acknowledged"] += len(host.answered)
            check_answered(store, session, host.answered, tally)
            check_records(store, session, tally)
            check_results(store, session, results, tally)
        if tally.faults and not counts:
            raise EngineFailed(f"the run without kills already fails: {tally.examples}")

    def _count_orphans(self) -> None:
        engines = [p for p in with_environment(MARK, self.mark) if "crash.engine" in p.command]
        for pid in wait_for_end([p.pid for p in engines], 10.0):
            self.tally.fault("orphans", f"process {pid}")


def difference(found: list[Any], expected: list[Any]) -> str:
    """The first difference between two prompts."""
    if len(found) != len(expected):
        return f"{len(found)} messages instead of {len(expected)}"
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        if one != other:
            texts = json.dumps(one["content"]), json.dumps(other["content"])
            at = next((n for n, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), 0)
            here, there = (text[max(0, at - 40) : at + 120] for text in texts)
            return f"message {index}: {here!r} instead of {there!r}"
    return "nowhere"


PATIENCE_S = 120.0
RETRY_PAUSE_S = 0.25
"""Before an engine that answered with an error is asked again: its database may be away."""


class ProcessHost:
    """One session on one engine process after another.

    `on_recovered` gets the seconds to the next answer.
    """

    def __init__(
        self,
        session: str,
        start: Callable[[], EngineProcess],
        on_recovered: Callable[[float], None] = lambda _seconds: None,
        on_refused: Callable[[str], None] = lambda _error: None,
    ) -> None:
        self.host: SimulatedHost = work_host(session)
        self.answered: list[tuple[int, list[Message]]] = []
        """Ordinal and prompt of every answered call."""
        self._start = start
        self._on_recovered = on_recovered
        self._on_refused = on_refused
        self._engine: EngineProcess | None = None
        self._calls: int | None = None
        """Stored calls when the session was first opened."""
        self._died_at: float | None = None

    @property
    def pid(self) -> int | None:
        """The engine's process id, None where none runs."""
        return None if self._engine is None else self._engine.pid

    def step(
        self, step: Step, before_asking: Callable[[], threading.Timer | None] = lambda: None
    ) -> bytes:
        """Makes one model call; returns what goes to the provider.

        `before_asking` may kill the engine. Raises `EngineFailed`.
        """
        self.ready()
        timer = before_asking()
        try:
            answer = self._ask(step)
        finally:
            if timer is not None:
                timer.cancel()
                timer.join()
        self.host.accept(answer)
        prompt = self.host.prompt()
        self.answered.append((answer["call"], prompt))
        return json.dumps(prompt, sort_keys=True).encode()

    def ready(self) -> None:
        """Starts an engine and opens the session, if none runs."""
        if self._engine is not None:
            return
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self._engine = self._start()
            try:
                self._engine.initialize()
                opened = self._engine.open(self.host.session, self._calls)
                if self._calls is None:
                    self._calls = opened["calls"]
                return
            except EngineEnded:
                self._bury()
            except EngineFailed as error:
                self._on_refused(str(error))
                self.close()
                time.sleep(RETRY_PAUSE_S)
        raise EngineFailed("no engine starts")

    def close(self) -> None:
        """Ends the engine as Pi does."""
        if self._engine is not None:
            self._engine.__exit__(None, None, None)
            self._engine = None

    def _ask(self, step: Step) -> AssembleResult:
        self.host.add(*step.messages)
        deadline = time.monotonic() + PATIENCE_S
        for attempt in count():
            try:
                self.ready()
                assert self._engine is not None
                if attempt == 0:
                    self._engine.tool_observed(self.host.session, step.observed)
                request = self.host.request(step.time_ms + attempt).model_dump()
                answer: AssembleResult = self._engine.ask("context/assemble", request)
                self._recovered()
                return answer
            except EngineEnded:
                self._bury()
            except EngineFailed:
                if time.monotonic() > deadline:
                    raise
                self._died_at = self._died_at or time.monotonic()
                self.host.replace_engine()
                time.sleep(RETRY_PAUSE_S)
        raise AssertionError("counting does not end")

    def _bury(self) -> None:
        self._died_at = self._died_at or time.monotonic()
        self.close()
        self.host.replace_engine()

    def _recovered(self) -> None:
        if self._died_at is not None:
            self._on_recovered(time.monotonic() - self._died_at)
            self._died_at = None


def starter(
    home: Path, cwd: Path, program: Sequence[str], environment: Mapping[str, str]
) -> Callable[[], EngineProcess]:
    """Starts engine processes for one state folder."""
    return lambda: EngineProcess(home, cwd, program=program, environment=environment)
