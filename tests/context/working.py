"""An agent at work on real files: each tool runs, is observed, and its result joins the list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from context.driver import Host
from context.messages import Block, assistant, calls, result
from context.sent import Sent

PATIENCE_S = 60.0
"""How long a test waits for a file to come to rest; not how long it takes."""


class Work:
    """A folder with files, and a host whose engine looks at them."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.folder = Path(host.cwd)
        self._calls = 0

    def file(self, name: str, content: str) -> Path:
        """Write a file behind the agent's back."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def read(self, name: str, **range_: int) -> Sent:
        """The agent reads a file."""
        content = (self.folder / name).read_text()
        if range_:
            first = range_.get("offset", 1) - 1
            picked = content.split("\n")[first : first + range_.get("limit", 10_000)]
            content = "\n".join(picked)
        return self.run("read", content, path=name, **range_)

    def write(self, name: str, content: str) -> Sent:
        """The agent writes a file."""
        self.file(name, content)
        done = f"Successfully wrote {len(content)} bytes to {name}"
        return self.run("write", done, path=name, content=content)

    def run(self, tool: str, output: str | list[Block], /, **arguments: Any) -> Sent:
        """The agent uses a tool that leaves the files as they are now."""
        id = self.call_id()
        answer = result(id, tool, output)
        self.host.observe(answer, arguments)
        self.host.add(assistant(calls(id, tool, **arguments)), answer)
        return self.host.call()

    def lose(self, *ran: tuple[str, str, dict[str, Any]]) -> None:
        """Parallel tools (tool, output, arguments) have run; the engine ended before it was told
        of any."""
        ids = [self.call_id() for _ in ran]
        named = list(zip(ids, ran, strict=True))
        self.host.restart()
        self.host.add(assistant(*(calls(id, tool, **given) for id, (tool, _, given) in named)))
        self.host.add(*(result(id, tool, output) for id, (tool, output, _) in named))

    def call_id(self) -> str:
        """The provider's id of the next tool call."""
        self._calls += 1
        return f"w{self._calls}"

    def change(self, name: str, content: str) -> None:
        """Somebody else writes a file, and the watcher notices."""
        self.file(name, content)
        self.notice_changes()

    def notice_changes(self) -> None:
        """What the watcher does after files have changed: the engine compares all it tracks."""
        self.host.opened.reconcile(patience_s=PATIENCE_S)
