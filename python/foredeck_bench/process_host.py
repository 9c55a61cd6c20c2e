"""A host that replaces engines which die."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path

from foredeck.context.messages.shape import Message
from foredeck.hosts.protocol import AssembleResult
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck_bench.engine_process import EngineEnded, EngineFailed, EngineProcess
from foredeck_bench.work_session import Step, work_host

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
