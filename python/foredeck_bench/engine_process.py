"""A real engine process, timed as the host sees it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from foredeck.context.messages.shape import Message
from foredeck.errors import ForedeckError
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck_bench.figures import used_seconds
from foredeck_bench.work_session import Step

INITIALIZE = {
    "protocol": 2,
    "shim": "bench",
    "host": {"name": "bench", "version": "0"},
    "trusted": False,
}


class EngineFailed(ForedeckError):
    pass


PROGRAM = "from foredeck.cli.main import main; raise SystemExit(main())"
"""As the shim runs it with a given interpreter."""


class EngineProcess:
    """`with EngineProcess(home, cwd) as engine:` starts one and ends it.

    `wrapper` goes before the interpreter. Raises `EngineFailed` for an error answer, and after the
    end.
    """

    def __init__(self, home: Path, cwd: Path, *, wrapper: Sequence[str] = ()) -> None:
        self.notices: list[str] = []
        self._cwd = cwd
        self._number = 0
        self._process = subprocess.Popen(
            [*wrapper, sys.executable, "-P", "-c", PROGRAM, "engine"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(home),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process.wait(timeout=30)
        finally:
            self.kill()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def initialize(self) -> None:
        """Send the first request."""
        self.ask("initialize", {**INITIALIZE, "cwd": str(self._cwd), "pid": os.getpid()})

    def open(self, session: str, *, file: Path | None = None) -> None:
        """Opens a session, once notifications are served."""
        name = None if file is None else str(file)
        params = {"session": session, "file": name, "cwd": str(self._cwd), "parent": None}
        self.ask("session/open", {**params, "reason": "startup"})

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """The result of one request."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            answer = json.loads(line)
            if answer.get("method") == "host/notify":
                self.notices.append(answer["params"]["text"])
            if answer.get("id") != self._number:
                continue
            if "error" in answer:
                raise EngineFailed(f"{method}: {answer['error']}")
            return answer["result"]
        raise EngineFailed(f"the engine ended at {method}")

    def ping_seconds(self, messages: list[Message]) -> float:
        """Seconds for a request of that size that needs no work."""
        began = time.perf_counter()
        self.ask("ping", {"messages": messages})
        return time.perf_counter() - began

    def tool_observed(self, session: str, observed: list[dict[str, Any]]) -> None:
        """Report tools that have run."""
        for tool in observed:
            params = {"session": session, **tool}
            self._send({"jsonrpc": "2.0", "method": "tool/observed", "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        self._process.stdin.flush()


@dataclass(frozen=True, slots=True)
class EngineStart:
    """Seconds of one engine: until its first answer, and of the processor until then and until a
    session is open."""

    answered: float
    busy: float | None
    busy_open: float | None


def start_engine(home: Path, cwd: Path) -> EngineStart:
    """Start an engine, open a session, and end it."""
    began = time.perf_counter()
    with EngineProcess(home, cwd) as engine:
        engine.initialize()
        answered, busy = time.perf_counter() - began, used_seconds(engine.pid)
        engine.open("start")
        return EngineStart(answered, busy, used_seconds(engine.pid))


def run_step(engine: EngineProcess, host: SimulatedHost, step: Step) -> float:
    """Make one model call; returns the seconds from the request to its answer."""
    if step.observed:
        engine.tool_observed(host.session, step.observed)
        engine.open(host.session)  # answered only when the notifications before it are served
    host.add(*step.messages)
    request = host.request(step.time_ms).model_dump()
    began = time.perf_counter()
    answer = engine.ask("context/assemble", request)
    seconds = time.perf_counter() - began
    host.accept(answer)
    return seconds


def _environment(home: Path) -> dict[str, str]:
    """This process's environment without foredeck settings, with bytecode kept as for an installed
    engine."""
    variables = {
        name: text for name, text in os.environ.items() if not name.startswith("FOREDECK_")
    }
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**variables, "FOREDECK_HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")}
