"""The host's part in rounds without Pi: asks an engine that is killed, and asks the next one."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from foredeck.hosts.pi.edits import apply_edits
from foredeck_bench.engine_process import Caller, EngineEnded, EngineFailed, EngineProcess
from foredeck_bench.work_session import Message, Step

PATIENCE_S = 120.0
RETRY_PAUSE_S = 0.25
"""Before an engine is asked again that answered with an error: its database may be away."""

Json = dict[str, Any]


class Sent:
    """The edits in force, merged from answers as the shim does."""

    def __init__(self) -> None:
        self._edits: dict[int, list[Any]] = {}
        self._inserts: dict[int, list[Message]] = {}
        self._drops: set[int] = set()

    def merge(self, answer: Json) -> None:
        """Take in an answer of `context/assemble`."""
        start = answer["from"]
        self._edits = {i: b for i, b in self._edits.items() if i < start} | dict(answer["edits"])
        kept = {i: m for i, m in self._inserts.items() if i < start}
        self._inserts = kept | dict(answer["inserts"])
        self._drops = {i for i in self._drops if i < start} | set(answer["drops"])

    def apply(self, messages: Sequence[Message]) -> list[Message]:
        """The list that goes out."""
        return apply_edits(messages, self._edits, self._inserts, self._drops)


class EngineHost:
    """One session on one engine after another.

    `start` makes an engine process; `on_recovered` is told the seconds from a death to the next
    answer, `on_refused` of an engine that does not start.
    """

    def __init__(
        self,
        session: str,
        start: Callable[[], EngineProcess],
        on_recovered: Callable[[float], None],
        on_refused: Callable[[str], None],
    ) -> None:
        self.caller = Caller(session)
        self.answered: list[tuple[int, list[Message]]] = []
        """Ordinal and prompt of every answered call."""
        self._start = start
        self._on_recovered = on_recovered
        self._on_refused = on_refused
        self._engine: EngineProcess | None = None
        self._calls: int | None = None
        self._sent = Sent()
        self._died_at: float | None = None

    @property
    def pid(self) -> int | None:
        """The engine's process id, None where none runs."""
        return None if self._engine is None else self._engine.pid

    def step(self, step: Step, killing: Callable[[], threading.Timer | None]) -> bytes:
        """One model call; `killing` is called when the engine is about to be asked.

        Returns the bytes of what goes to the provider. Raises `EngineFailed` where no engine
        can be had.
        """
        self.ready()
        timer = killing()
        try:
            answer = self._ask(step)
        finally:
            if timer is not None:
                timer.cancel()
                timer.join()
        self.caller.answered(answer)
        self._sent.merge(answer)
        prompt = self._sent.apply(self.caller.messages)
        self.answered.append((answer["call"], prompt))
        return json.dumps(prompt, sort_keys=True).encode()

    def kill(self) -> None:
        """End the engine without warning."""
        if self._engine is not None:
            self._engine.kill()

    def close(self) -> None:
        """End the engine, as the end of Pi does."""
        if self._engine is not None:
            self._engine.__exit__(None, None, None)
            self._engine = None

    def _ask(self, step: Step) -> Json:
        messages = list(step.messages)
        deadline = time.monotonic() + PATIENCE_S
        for attempt in count():
            try:
                self.ready()
                assert self._engine is not None
                if attempt == 0:
                    self._engine.observe(self.caller.session, step.observed)
                params = self.caller.request(messages, step.time_ms + attempt)
                messages = []
                answer: Json = self._engine.ask("context/assemble", params)
                self._recovered()
                return answer
            except EngineEnded:
                self._bury()
            except EngineFailed:
                if time.monotonic() > deadline:
                    raise
                self._died_at = self._died_at or time.monotonic()
                self.caller.replace_engine()
                time.sleep(RETRY_PAUSE_S)
        raise AssertionError("counting does not end")

    def ready(self) -> None:
        """Start an engine and open the session, where none runs."""
        if self._engine is not None:
            return
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self._engine = self._start()
            try:
                self._engine.initialize()
                opened = self._engine.open(self.caller.session, self._calls)
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

    def _bury(self) -> None:
        self._died_at = self._died_at or time.monotonic()
        self.close()
        self.caller.replace_engine()

    def _recovered(self) -> None:
        if self._died_at is not None:
            self._on_recovered(time.monotonic() - self._died_at)
            self._died_at = None


def starter(
    home: Path, cwd: Path, program: Sequence[str], environment: Mapping[str, str]
) -> Callable[[], EngineProcess]:
    """Starts engine processes for one state folder."""
    return lambda: EngineProcess(home, cwd, program=program, environment=environment)
