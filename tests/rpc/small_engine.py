"""A small engine that keeps what it is told in a journal file; run as a program it serves stdio.

Every state change appends one line to `journal` in the state folder, so that a test can see what
was committed, in which order, and whether the engine was closed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from foredeck import __version__
from foredeck.config import Config, ensure_home
from foredeck.errors import OutOfSync, StoreUnavailable, ToolError, UnknownSession
from foredeck.hosts.host import Host
from foredeck.hosts.protocol import (
    AssembleParams,
    AssembleResult,
    CommandParams,
    CommandResult,
    InitializeParams,
    InitializeResult,
    NoResult,
    SessionCloseParams,
    SessionOpenParams,
    SessionOpenResult,
    SessionParams,
    ToolCallParams,
    ToolCallResult,
    ToolObservedParams,
)


class SmallEngine:
    """Holds the host's messages of one session; answers with one edit per new tool result."""

    def __init__(self, config: Config, host: Host, *, warnings: Sequence[str] = ()) -> None:
        self.warnings = list(warnings)
        self.config = config
        self.notify = host.notify
        self.call_soon = host.call_soon
        self.opened: Any = None
        self.session: str | None = None
        self.messages: list[Any] = []
        self.calls = 0
        self.journal = ensure_home(config.home) / "journal"

    def initialize(self, params: InitializeParams) -> InitializeResult:
        if params.shim == "broken":
            raise StoreUnavailable("the store is broken")
        self.write("initialize")
        return {
            "protocol": 2,
            "engine": __version__,
            "store": self.config.store,
            "deadline_ms": self.config.deadline_ms,
            "prepare_ms": 0,
            "command": "foredeck",
            "warnings": self.warnings,
        }

    def open_session(self, params: SessionOpenParams) -> SessionOpenResult:
        self.session = params.session
        self.messages = []
        self.write(f"open {self.session}")
        return {"session": self.session, "calls": self.calls, "objects": 0, "resumed": False}

    def assemble(self, params: AssembleParams) -> AssembleResult:
        self._require(params)
        if params.keep > len(self.messages):
            raise OutOfSync("send everything")
        self.messages[params.keep :] = params.messages
        self.calls += 1
        self.write(f"assemble {self.calls}")
        return {
            "call": self.calls,
            "from": params.keep,
            "ops": [["keep", len(params.messages)]] if params.messages else [],
            "marker": None,
            "status": {"text": ""},
            "notices": [],
        }

    def tool_call(self, params: ToolCallParams) -> ToolCallResult:
        self._require(params)
        if params.tool != "activate":
            raise ToolError(f"there is no tool {params.tool}")
        self.write(f"tool {params.id}")
        return {"text": "done", "details": {"foredeck": params.input}}

    def tool_observed(self, params: ToolObservedParams) -> None:
        self._require(params)
        self.write(f"observe {params.id}")

    def command(self, params: CommandParams) -> CommandResult:
        """Each name is one way to behave."""
        name, args = params.name, params.args
        if name == "echo":
            return {"text": args}
        if name == "sleep":
            self.write("sleep begins")
            time.sleep(float(args))
            self.write("sleep ends")
        if name == "wait for":
            self.write("wait begins")
            while not Path(args).exists():
                time.sleep(0.01)
            self.write("wait ends")
        if name == "tell":
            self.notify("info", args)
        if name == "print":
            print(args, flush=True)
        if name == "crash":
            raise ZeroDivisionError("a bug")
        if name == "not json":
            return {"text": float("nan")}
        return {"text": ""}

    def close_session(self, params: SessionCloseParams) -> NoResult:
        self._require(params)
        self.session = None
        return {}

    def close(self) -> None:
        self.write("close")

    def __getattr__(self, _name: str) -> Callable[[SessionParams], dict[str, Any]]:
        """All other methods, of whose answers no test asks anything."""
        return lambda _params: {}

    def write(self, line: str) -> None:
        with self.journal.open("a") as file:
            file.write(f"{line}\n")

    def _require(self, params: SessionParams) -> None:
        if params.session != self.session:
            raise UnknownSession(f"no session {params.session} is open")


def read_journal(home: Path) -> list[str]:
    """The lines that the engine of this state folder wrote."""
    file = home / "journal"
    return file.read_text().splitlines() if file.exists() else []


if __name__ == "__main__":
    from foredeck.rpc.server import serve

    sys.exit(serve(SmallEngine))
