"""Working memory from one session to the next: written by a tool, read before the chat."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from context.conftest import NewHost
from context.driver import Host
from context.scenes import ask
from context.sent import Sent, message_text
from foredeck.errors import ToolError

Start = Callable[..., Host]

PAGE = {"action": "update_context", "section": "Current Work", "content": "- Blocker: CI is red"}


@pytest.fixture
def start(new_host: NewHost, tmp_path: Path) -> Start:
    """Begins a session of one project, with everything that a session has."""
    folder = tmp_path / "repo"
    folder.mkdir()

    def begin(session: str, **settings: object) -> Host:
        host = new_host(session=session, cwd=str(folder), disk=True, **settings)
        host.sections = None
        return host

    return begin


def head(sent: Sent) -> str:
    """The block before the chat; empty where there is none."""
    return message_text(sent.prompt[0]) if len(sent.prompt) > len(sent.messages) else ""


def said(host: Host, **more: str) -> str:
    """What the model is told of a change to its page."""
    answer = host.tool(f"t{len(host.messages)}", "task-mutate", **{**PAGE, **more})
    text: str = answer["content"][0]["text"]
    return text


def test_a_sessions_own_page_is_not_the_projects(
    start,
    snapshot: SnapshotAssertion,  # type: ignore[no-untyped-def]
) -> None:
    first = start("first", tools={"tasks": "on"})
    ask(first)
    said(first, scope="thread", content="- Blocker: mine")
    said(first, content="- Blocker: ours")
    first.wait(3600)

    assert head(ask(first)) == snapshot
    first.close()
    assert "mine" not in head(ask(start("second")))


def test_an_empty_text_empties_a_section_and_never_the_page(start: Start) -> None:
    first = start("first", tools={"tasks": "on"})
    ask(first)
    said(first)
    assert "Kept in working memory" in said(first, content="")
    with pytest.raises(ToolError, match="update_context needs content"):
        said(first, content="", section="")
    first.close()
    assert "CI is red" not in head(ask(start("second")))
