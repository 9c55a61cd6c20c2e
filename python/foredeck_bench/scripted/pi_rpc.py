"""A client for Pi's RPC mode (`pi --mode rpc`)."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from foredeck_bench.scripted.pi_process import PiInstall, PiWorkspace, descendants, pi_arguments
from foredeck_bench.twin.script import Json
from foredeck_lab.processes import Process, kill

_DIALOGS = ("select", "confirm", "input", "editor")


class RpcError(Exception):
    """Pi answered a command with an error, ended, or did not answer in time."""


class RpcPi:
    """A Pi that is driven over its stdin and stdout.

        with RpcPi(install, workspace, extensions=[checkout]) as pi:
            pi.prompt("hello")
            pi.state()["sessionId"]

    `events` holds every record that Pi wrote, responses left out, in order; `on_event` gets each
    as it comes, on the thread that reads. Dialogs that extensions open are answered by `dialogs`;
    without it they are cancelled, so that nothing waits for a user. `timeout_s` bounds every wait.
    """

    def __init__(
        self,
        install: PiInstall,
        workspace: PiWorkspace,
        *,
        extensions: Sequence[Path] = (),
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
        on_event: Callable[[Json], None] | None = None,
    ) -> None:
        self.events: list[Json] = []
        self.dialogs: Callable[[Json], Json] | None = None
        self._responses: dict[str, Json] = {}
        self._changed = threading.Condition()
        self._timeout_s = timeout_s
        self._on_event = on_event
        self._sent = 0
        self._log = (workspace.root / "rpc.stderr").open("ab")
        self._process = subprocess.Popen(
            [*install.command, "--mode", "rpc", *pi_arguments(extensions, arguments)],
            cwd=workspace.repo,
            env=workspace.environment(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    # ------------------------------------------------------------ commands

    def send(self, kind: str, **fields: Any) -> Json:
        """Sends a command and returns its `data`. Raises RpcError."""
        return self.answer_to(self.send_later(kind, **fields))

    def send_later(self, kind: str, **fields: Any) -> str:
        self._sent += 1
        name = f"r{self._sent}"
        self._write({"id": name, "type": kind, **fields})
        return name

    def answer_to(self, name: str) -> Json:
        """As `send`, for what was sent before."""
        response = self._wait(lambda: self._responses.pop(name, None), f"response {name}")
        if not response.get("success"):
            raise RpcError(f"{response.get('command')}: {response.get('error')}")
        data: Json = response.get("data") or {}
        return data

    def prompt(self, message: str, **fields: Any) -> list[Json]:
        """Sends a prompt that reaches the model, and returns the events until Pi has settled."""
        start = len(self.events)
        self.send("prompt", message=message, **fields)
        self.wait_idle(start)
        return self.events[start:]

    def command(self, text: str) -> list[Json]:
        """Runs a slash command; returns the events before its response."""
        start = len(self.events)
        self.send("prompt", message=text)
        return self.events[start:]

    def wait_idle(self, since: int) -> Json:
        """Wait for the `agent_settled` event among the events from index `since` on."""
        return self.wait_event(lambda event: event.get("type") == "agent_settled", since)

    def wait_event(self, matches: Callable[[Json], bool], since: int = 0) -> Json:
        """The first matching event from index `since` on."""

        def look() -> Json | None:
            return next((e for e in self.events[since:] if matches(e)), None)

        return self._wait(look, "event")

    def state(self) -> Json:
        return self.send("get_state")

    def entries(self) -> list[Json]:
        entries: list[Json] = self.send("get_entries")["entries"]
        return entries

    def fork(self, message: int) -> Json:
        messages = self.send("get_fork_messages")["messages"]
        return self.send("fork", entryId=messages[message]["entryId"])

    def compact(self, instructions: str | None = None) -> Json:
        """Compact the session now."""
        return self.send(
            "compact", **({"customInstructions": instructions} if instructions else {})
        )

    def abort(self) -> None:
        """Stop the current run, as Esc does."""
        self.send("abort")

    def notifications(self) -> list[str]:
        return [e["message"] for e in self.events if e.get("method") == "notify"]

    def statuses(self) -> list[str]:
        """Status line texts of extensions, without cleared ones."""
        texts = [e.get("statusText") for e in self.events if e.get("method") == "setStatus"]
        return [text for text in texts if text]

    # ------------------------------------------------------------ processes

    @property
    def pid(self) -> int:
        """Process id of Pi."""
        return self._process.pid

    def children(self) -> list[Process]:
        """Processes that descend from Pi."""
        return descendants(self.pid)

    def engines(self) -> list[Process]:
        """foredeck engines that descend from Pi."""
        return [p for p in self.children() if "foredeck" in p.command and " engine" in p.command]

    def kill_engine(self) -> list[int]:
        """Kills the engines and returns their process ids."""
        pids = [p.pid for p in self.engines()]
        for pid in pids:
            kill(pid)
        return pids

    def shutdown(self) -> int:
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            code = self._process.wait(self._timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise RpcError(f"pi did not end in {self._timeout_s:g} s") from None
        self._reader.join(self._timeout_s)
        self._log.close()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    # ------------------------------------------------------------ wire

    def _write(self, record: Json) -> None:
        stdin = self._process.stdin
        if stdin is None or stdin.closed:
            raise RpcError("pi has been shut down")
        try:
            stdin.write(json.dumps(record).encode() + b"\n")
            stdin.flush()
        except OSError as error:
            raise RpcError(f"pi does not read any more: {error}") from error

    def _read(self) -> None:
        stdout = self._process.stdout
        if stdout is None:
            return
        for line in stdout:
            self._take(json.loads(line))
        with self._changed:
            self._changed.notify_all()

    def _take(self, record: Json) -> None:
        with self._changed:
            if record.get("type") == "response" and "id" in record:
                self._responses[record["id"]] = record
            else:
                self.events.append(record)
            self._changed.notify_all()
        if self._on_event is not None and record.get("type") != "response":
            self._on_event(record)
        if record.get("type") == "extension_ui_request" and record.get("method") in _DIALOGS:
            answer = {"cancelled": True} if self.dialogs is None else self.dialogs(record)
            self._write({"type": "extension_ui_response", "id": record["id"], **answer})

    def _wait(self, look: Callable[[], Json | None], what: str) -> Json:
        deadline = time.monotonic() + self._timeout_s
        with self._changed:
            while True:
                event = look()
                if event is not None:
                    return event
                if not self._reader.is_alive():
                    raise RpcError(f"pi ended with no {what}")
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0:
                    raise RpcError(f"no {what} in {self._timeout_s:g} s")
                self._changed.wait(min(remaining_s, 1.0))
