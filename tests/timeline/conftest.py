from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from file_agent import FileAgent as Agent

MakeAgent = Callable[..., Agent]


@pytest.fixture
def make_agent(tmp_path: Path) -> Iterator[MakeAgent]:
    """Makes agents that work in one folder, on one store."""
    folder = tmp_path / "work"
    folder.mkdir()
    with ExitStack() as stack:

        def make(session: str = "s", **settings: Any) -> Agent:
            agent = Agent(tmp_path / "home", folder, session, **settings)
            stack.callback(agent.close)
            return agent

        yield make


@pytest.fixture
def agent(make_agent: MakeAgent) -> Agent:
    """One agent."""
    return make_agent()


@pytest.fixture
def at_work(agent: Agent) -> Agent:
    """An agent that has changed two files at its first call, one of them new."""
    (agent.cwd / "a.txt").write_text("one\n")
    agent.answer()
    agent.read("a.txt")
    agent.call("write", path="a.txt", content="two\n")
    agent.call("write", path="new/b.txt", content="b\n")
    agent.answer()
    return agent
