"""A real engine process, spoken to over its pipes."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Self

PROGRAM = Path(__file__).with_name("small_engine.py")
PATIENCE_SECONDS = 240
"""Far beyond what anything here takes: only a test that hangs gets there."""

INITIALIZE = {
    "protocol": 2,
    "shim": "0.1.0",
    "host": {"name": "pi", "version": "1.6.0"},
    "cwd": "/",
    "trusted": False,
    "pid": 1,
}


def line(message: Any) -> bytes:
    """One message as the shim writes it."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def request(number: Any, method: str, params: Any = None) -> bytes:
    """The line of one request."""
    return line({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})


def notification(method: str, params: Any) -> bytes:
    """The line of one notification."""
    return line({"jsonrpc": "2.0", "method": method, "params": params})


class EngineProcess:
    """`with EngineProcess(home) as engine:` starts one; leaving it closes stdin and waits."""

    def __init__(self, home: Path, command: list[str] | None = None, **environ: str) -> None:
        self.process = subprocess.Popen(
            command or [sys.executable, str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**_clean_environment(home), **environ},
        )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._errors: list[bytes] = []
        self._threads = [
            threading.Thread(target=self._collect, daemon=True),
            threading.Thread(target=self._collect_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        try:
            self.end()
        finally:
            self.process.kill()
            self.process.wait()

    def send(self, data: bytes) -> None:
        """Write bytes to the engine's stdin."""
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self) -> Any:
        """The next line of the engine's stdout, as JSON."""
        data = self._lines.get(timeout=PATIENCE_SECONDS)
        assert data.endswith(b"\n"), f"no whole line: {data!r}"
        return json.loads(data)

    def ask(self, number: Any, method: str, params: Any = None) -> Any:
        """One request and its response."""
        self.send(request(number, method, params))
        return self.receive()

    def initialize(self) -> None:
        """Get ready, with the session `s` open."""
        answer = self.ask(1, "initialize", INITIALIZE)
        assert "result" in answer, answer
        opened = {"session": "s", "file": None, "cwd": "/", "reason": "startup", "parent": None}
        answer = self.ask(2, "session/open", opened)
        assert "result" in answer, answer

    def end(self) -> int:
        """Close stdin and wait for the end; gives the exit code."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        return self.wait()

    def wait(self) -> int:
        """Wait for the end; gives the exit code."""
        code = self.process.wait(PATIENCE_SECONDS)
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
        return code

    def rest(self) -> list[Any]:
        """Lines not received yet. Only after the end."""
        found = []
        while (data := self._lines.get(timeout=PATIENCE_SECONDS)) != b"":
            found.append(json.loads(data))
        return found

    @property
    def log(self) -> str:
        """What it has written to stderr. Whole after the end."""
        return b"".join(self._errors).decode()

    def _collect(self) -> None:
        assert self.process.stdout is not None
        for data in self.process.stdout:
            self._lines.put(data)
        self._lines.put(b"")

    def _collect_errors(self) -> None:
        assert self.process.stderr is not None
        self._errors.extend(self.process.stderr)


def _clean_environment(home: Path) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("FOREDECK")}
    return {
        **kept,
        "HOME": str(home / "user"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "FOREDECK_HOME": str(home),
    }
