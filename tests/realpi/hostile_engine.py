"""An engine that misbehaves on command: the real one, behind a pipe that breaks as planned.

    python hostile_engine.py PLAN COUNTS ENGINE [ARGUMENT ...]

PLAN is a JSON list of faults, `{"method", "number", "do"}`: what to do with the request or
notification of that method and number, counted from 1 over all processes that share the folder
COUNTS. `do` is one of

- `ignore`: it is not passed on, and nothing comes back;
- `hang`: so, and everything after it neither;
- `die`: the engine and this process end at once, by SIGKILL;
- `die-committed`: so, but after the engine has done it, and before its answer is passed on;
- `die-answered`: so, but after the answer was passed on;
- `rubbish`: lines that are no JSON-RPC come back instead;
- `refuse`: an internal error comes back instead;
- `misplace`, `misfit`, `empty`: the answer comes back with edits beyond the list, with blocks
  that its messages do not have, or without its fields.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

Message = dict[str, Any]

RUBBISH = b'\xff\x00 not json\n[1, 2\nnull\n{}\n"text"\n{"id": {}, "result": 7}\n'


class HostileEngine:
    """Copies lines both ways between the host and a real engine, but for the faults planned."""

    def __init__(self, plan: list[Message], counts: Path, command: list[str]) -> None:
        self._plan = {(fault["method"], fault["number"]): fault["do"] for fault in plan}
        self._counts = counts
        self._engine = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._awaited: dict[Any, str] = {}
        self._hung = False
        self._writing = threading.Lock()

    def run(self) -> int:
        """Copy until the host closes its end; returns the engine's exit status."""
        reader = threading.Thread(target=self._copy_answers, daemon=True)
        reader.start()
        for line in sys.stdin.buffer:
            message = json.loads(line)
            method = message.get("method")
            fault = None if method is None else self._plan.get((method, self._count(method)))
            if not self._meet(fault, message):
                self._pass_on(line)
        self._in.close()
        code = self._engine.wait()
        reader.join()
        return code

    @property
    def _in(self) -> BinaryIO:
        assert self._engine.stdin is not None
        return self._engine.stdin  # type: ignore[return-value]

    def _count(self, method: str) -> int:
        path = self._counts / method.replace("/", "-")
        number = int(path.read_text()) + 1 if path.exists() else 1
        path.write_text(str(number))
        return number

    def _meet(self, fault: str | None, message: Message) -> bool:
        """Do what was planned with a message; returns whether it must not be passed on."""
        if self._hung or fault in ("ignore", "hang"):
            self._hung = self._hung or fault == "hang"
            return True
        if fault == "die":
            self._die()
        if fault == "rubbish":
            self._answer(RUBBISH)
            return True
        if fault == "refuse":
            error = {"code": -32603, "message": "out of order"}
            self._answer_with({"jsonrpc": "2.0", "id": message["id"], "error": error})
            return True
        if fault is not None:
            self._awaited[message.get("id")] = fault
        return False

    def _pass_on(self, line: bytes) -> None:
        with contextlib.suppress(OSError):
            self._in.write(line)
            self._in.flush()

    def _copy_answers(self) -> None:
        assert self._engine.stdout is not None
        for line in self._engine.stdout:
            message = json.loads(line)
            fault = self._awaited.pop(message.get("id"), None) if "method" not in message else None
            if fault == "die-committed":
                self._die()
            if not self._hung:
                self._answer(line if fault is None else spoiled(line, fault))
            if fault == "die-answered":
                self._die()

    def _answer_with(self, message: Message) -> None:
        self._answer(json.dumps(message).encode() + b"\n")

    def _answer(self, data: bytes) -> None:
        with self._writing, contextlib.suppress(OSError):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def _die(self) -> NoReturn:
        self._engine.kill()
        self._engine.wait()
        os.kill(os.getpid(), signal.SIGKILL)
        raise SystemExit(1)


def spoiled(line: bytes, fault: str) -> bytes:
    """An answer to `context/assemble` made wrong, as the fault says."""
    message = json.loads(line)
    text = {"type": "text", "text": "nonsense"}
    match fault:
        case "misplace":
            message["result"]["ops"].append(["rewrite", [text]])
        case "misfit":
            message["result"] |= {"from": 0, "ops": [["rewrite", [{"keep": 77}]]]}
        case "empty":
            message["result"] = {}
    return json.dumps(message).encode() + b"\n"


def main() -> int:
    plan, counts, *command = sys.argv[1:]
    return HostileEngine(json.loads(plan), Path(counts), command).run()


if __name__ == "__main__":
    sys.exit(main())
