"""Whose change it was, when the watcher sees a file before the tool that wrote it has ended."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from foredeck.config import Config
from foredeck.engine import Engine

WAIT_S = 120.0


class Watched:
    """An engine in a folder of its own; `turn()` runs what its watcher has left for its thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.soon: queue.Queue[Callable[[], None]] = queue.Queue()
        self.engine = Engine(Config(home=folder / "home"), call_soon=self.soon.put)
        self.engine.open_session({"session": "s", "cwd": str(folder), "file": None})

    def turn(self) -> None:
        self.soon.get(timeout=WAIT_S)()

    def tell(self, what: str, id: str, tool: str, **more: Any) -> None:
        params = {"session": "s", "id": id, "tool": tool, **more}
        getattr(self.engine, what)(params)

    def ran(self, id: str, tool: str, path: str, said: str) -> None:
        content = [{"type": "text", "text": said}]
        self.tell("observe", id, tool, input={"path": path}, content=content)

    def assemble(self) -> None:
        """A request after the file was read."""
        call = {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "a.txt"}}
        answer = {"role": "toolResult", "toolCallId": "t1", "toolName": "read"}
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": "read it"},
            {"role": "assistant", "content": [call]},
            {**answer, "content": [{"type": "text", "text": "one"}], "isError": False},
        ]
        messages = [{**message, "timestamp": n} for n, message in enumerate(messages)]
        entries = ["e1", "e2", "e3"]
        params = {"session": "s", "keep": 0, "messages": messages, "entries": entries}
        self.engine.assemble({**params, "time_ms": 1})

    def authors(self, path: str) -> list[str]:
        session = self.engine._session
        assert session is not None
        id, _ = session.source.identify(path, str(self.folder))
        return [v.fields["provenance"]["generator"] for v in session.store.history(id)]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """An engine that has read `a.txt` and watches it."""
    (tmp_path / "a.txt").write_text("one")
    made = Watched(tmp_path)
    made.ran("t1", "read", "a.txt", "one")
    made.assemble()
    made.turn()  # whatever has changed until the tracking began
    yield made
    made.engine.close()


@pytest.mark.parametrize("path", ["a.txt", "./sub/../a.txt", "@a.txt"])
def test_what_a_running_tool_writes_is_the_agents(watched: Watched, path: str) -> None:
    watched.tell("tool_started", "t2", "edit", path=path)
    (watched.folder / "a.txt").write_text("two")
    watched.turn()
    assert watched.authors("a.txt") == ["system"]
    watched.ran("t2", "edit", path, "done")
    assert watched.authors("a.txt") == ["system", "agent"]


def test_what_nobody_announced_is_not_the_agents(watched: Watched) -> None:
    watched.tell("tool_started", "t2", "read", path="a.txt")
    watched.tell("tool_started", "t3", "edit", path="b.txt")
    (watched.folder / "a.txt").write_text("two")
    watched.turn()
    assert watched.authors("a.txt") == ["system", "system"]


def test_a_tool_that_never_ends_hides_nothing(watched: Watched) -> None:
    watched.tell("tool_started", "t2", "edit", path="a.txt")
    (watched.folder / "a.txt").write_text("two")
    watched.turn()
    assert watched.authors("a.txt") == ["system"]
    watched.assemble()
    assert watched.authors("a.txt") == ["system", "system"]
    (watched.folder / "a.txt").write_text("three")
    watched.turn()
    assert watched.authors("a.txt") == ["system"] * 3
