"""An agent on a real engine, whose tools run here like Pi's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foredeck.config import Config
from foredeck.engine.engine import Engine
from foredeck.hosts.host import Host
from foredeck.hosts.protocol import (
    RunningTool,
    ToolObservedParams,
    ToolPrepareParams,
    ToolPrepareResult,
    ToolStartedParams,
)
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.sources.tool_calls import apply_edits, edits_of
from processes import run_program


class FileAgent:
    """One session; files are not watched."""

    def __init__(self, home: Path, cwd: Path, session: str = "s", **settings: Any) -> None:
        self.home = home
        self.cwd = cwd
        self.session = session
        self.engine = Engine(Config(home=home, **settings), Host())
        self._host = SimulatedHost(session)
        self.open()
        self._calls = 0
        self.notices: list[str] = []
        self.prompt = ""
        self._said = 0
        self._away: list[dict[str, Any]] = []
        """What a summary stands for."""
        self._asked: list[int] = []
        """By call: how many messages it had."""
        self._made: list[tuple[str, str, dict[str, Any], str]] = []
        """Tool calls since the last answer, with their output."""

    def open(self, running: Sequence[RunningTool] = ()) -> None:
        """Open the session, or open it again."""
        params = self._host.opening(str(self.cwd))
        self.engine.open_session(params.model_copy(update={"running": [*running]}))
        self._host.replace_engine()

    def answer(self) -> int:
        if self._host.messages:
            calls = [
                {"type": "toolCall", "id": id, "name": tool, "arguments": arguments}
                for id, tool, arguments, _ in self._made
            ]
            self._say("assistant", content=[*calls, {"type": "text", "text": "Hm."}])
        for id, tool, _, text in self._made:
            content = [{"type": "text", "text": text}]
            self._say("toolResult", toolCallId=id, toolName=tool, content=content, isError=False)
        self._made.clear()
        self._say("user", content="Go on.")
        self._host.entries = [None] * len(self._host.messages)
        self._asked.append(len(self._host.messages))
        answer = self.engine.assemble(self._host.request(time_ms=1))
        self._host.accept(answer)
        self.notices += [notice["text"] for notice in answer["notices"]]
        blocks = (block for slot in self._host.plan.slots for block in slot.blocks or ())
        texts = (block.get("text") for block in blocks)
        self.prompt = "\n".join(text for text in texts if isinstance(text, str))
        return answer["call"]

    def hear(self, text: str) -> None:
        """What the user says before the next answer."""
        self._say("user", content=text)

    def back_to(self, call: int) -> None:
        """`/tree`: goes back to where that call was made."""
        del self._host.messages[self._asked[call - 1] :]
        self._made.clear()

    def ordinal(self, path: str) -> int:
        """The number of a file's handle."""
        session = self.engine.opened.session
        object_id, _ = session.objects.source.identify(path, str(self.cwd))
        return session.objects.index.by_object[object_id]

    def put_away(self, count: int) -> None:
        """Lets a summary stand for the first messages, like the host's compaction."""
        self._away = self._host.messages[:count]
        summary = {"role": "compactionSummary", "summary": "All of it.", "tokensBefore": 1}
        self._host.messages[:count] = [{**summary, "timestamp": 99}]

    def take_back(self) -> None:
        """Brings back what was put away."""
        self._host.messages[:1] = self._away

    def _say(self, role: str, **fields: Any) -> None:
        self._host.messages.append({"role": role, **fields, "timestamp": self._said})
        self._said += 1

    def prepare(self, tool: str, **arguments: Any) -> tuple[str, ToolPrepareResult]:
        """Asks whether a call may run."""
        self._calls += 1
        id = f"{self.session}-{self._calls}"
        params = ToolPrepareParams(session=self.session, id=id, tool=tool, input=arguments)
        return id, self.engine.prepare_tool(params)

    def read(self, path: str, *, shown: str | None = None) -> None:
        """Reads a file; `shown`: its content then, if it is gone."""
        text = (self.cwd / path).read_text() if shown is None else shown
        self._calls += 1
        self._observed(f"{self.session}-{self._calls}", "read", {"path": path}, text)

    def run(self, tool: str, **arguments: Any) -> ToolPrepareResult:
        """A whole call and the next answer."""
        verdict = self.call(tool, **arguments)
        self.answer()
        return verdict

    def call(self, tool: str, **arguments: Any) -> ToolPrepareResult:
        """A whole call, with what was said before it ran."""
        id, verdict = self.prepare(tool, **arguments)
        if "block" not in verdict:
            self.finish(id, tool, **arguments)
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
            result = run_program("bash", "-c", arguments["command"], cwd=self.cwd)
            return result.stdout
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
        self._made.append((id, tool, arguments, text))
        content = [{"type": "text", "text": text}]
        self.engine.tool_observed(
            ToolObservedParams(
                session=self.session, id=id, tool=tool, input=arguments, content=content
            )
        )

    def close(self) -> None:
        """End the engine."""
        self.engine.close()
