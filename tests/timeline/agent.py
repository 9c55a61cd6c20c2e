"""An agent on a real engine: its tools run here, one after the other, as Pi runs them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from foredeck.config import Config
from foredeck.engine.engine import Engine
from foredeck.hosts.protocol import (
    SessionOpenParams,
    ToolObservedParams,
    ToolPrepareParams,
    ToolPrepareResult,
    ToolStartedParams,
)
from foredeck.sources.edits import apply_edits, edits_of


class Agent:
    """One session; `settings` as in the configuration. Files are not watched."""

    def __init__(self, home: Path, cwd: Path, session: str = "s", **settings: Any) -> None:
        self.cwd = cwd
        self.session = session
        self.engine = Engine(Config(home=home, **settings))
        self.open()
        self._calls = 0

    def open(self) -> None:
        """Open the session, or open it again."""
        self.engine.open_session(
            SessionOpenParams(
                session=self.session,
                file=None,
                cwd=str(self.cwd),
                reason="startup",
                parent=None,
            )
        )

    def answer(self) -> None:
        """The model has read what came back, and answers anew."""
        assert self.engine.opened is not None
        self.engine.opened.guard.forget()

    def prepare(self, tool: str, **arguments: Any) -> tuple[str, ToolPrepareResult]:
        """Ask whether a call may run; its id, and the answer."""
        self._calls += 1
        id = f"{self.session}-{self._calls}"
        params = ToolPrepareParams(session=self.session, id=id, tool=tool, input=arguments)
        return id, self.engine.prepare_tool(params)

    def read(self, path: str, *, shown: str | None = None) -> None:
        """The agent reads a file; `shown`: what it has shown, where that is gone by now."""
        text = (self.cwd / path).read_text() if shown is None else shown
        self._calls += 1
        self._observed(f"{self.session}-{self._calls}", "read", {"path": path}, text)

    def run(self, tool: str, **arguments: Any) -> ToolPrepareResult:
        """A whole call; what has been answered before it ran, if it did."""
        id, verdict = self.prepare(tool, **arguments)
        if "block" not in verdict:
            self.finish(id, tool, **arguments)
        self.answer()
        return verdict

    def finish(self, id: str, tool: str, **arguments: Any) -> None:
        """The second half of a call: it runs, and is reported."""
        if "path" in arguments:
            path = arguments["path"]
            started = ToolStartedParams(session=self.session, id=id, tool=tool, path=path)
            self.engine.tool_started(started)
        text = self._do(tool, arguments)
        self._observed(id, tool, arguments, text)

    def _do(self, tool: str, arguments: dict[str, Any]) -> str:
        if tool == "bash":
            done = subprocess.run(
                ["bash", "-c", arguments["command"]],
                cwd=self.cwd,
                check=False,
                capture_output=True,
                text=True,
            )
            return done.stdout
        path = self.cwd / arguments["path"]
        if tool == "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(arguments["content"])
        else:
            text = apply_edits(path.read_text(), edits_of(arguments))
            assert text is not None
            path.write_text(text)
        return "done"

    def _observed(self, id: str, tool: str, arguments: dict[str, Any], text: str) -> None:
        content = [{"type": "text", "text": text}]
        self.engine.observe(
            ToolObservedParams(
                session=self.session, id=id, tool=tool, input=arguments, content=content
            )
        )

    def close(self) -> None:
        """End the engine."""
        self.engine.close()
