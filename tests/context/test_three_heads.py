"""Three heads as a model reads them: one also stands in docs/context.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from context.conftest import NewHost
from context.driver import Host
from context.messages import assistant
from context.scenes import ask, finish
from context.sent import Sent, message_text
from context.working import Work
from foredeck.config import Config

Start = Callable[..., Work]

CHOICES = [
    ("sqlite", "One file, no server: people try it in a minute"),
    ("wal", "Readers never wait for the writer"),
    ("retries", "Three times, then the queue keeps the job"),
    ("naming", "Jobs are verbs, queues are nouns"),
    ("clock", "Only the scheduler reads the time"),
    ("limits", "A job may take a minute and a megabyte"),
    ("errors", "What a user can mend is an answer, not a trace"),
    ("release", "Tag, changelog, wheel, announcement"),
]
PAGE_OF_DOCS = Path(__file__).parents[2] / "docs/context.md"
TASK = re.compile(r"\bt-[0-9a-z]{4,12}\b")
PAGE = {
    "Current Work": "- The scheduler drops jobs that came due in a restart\n- Next: replay them",
    "Conventions": "- Every queue has an owner\n- No sleep in a test",
}


@pytest.fixture
def start(new_host: NewHost, tmp_path: Path) -> Start:
    """Begins a session of one project, with everything that a session has."""
    folder = tmp_path / "repo"
    folder.mkdir()

    def begin(session: str, **settings: Any) -> Work:
        host = new_host(session=session, cwd=str(folder), disk=True, **settings)
        host.sections = None
        return Work(host)

    return begin


def write_notes(work: Work) -> None:
    """Decisions of a small project, the oldest first."""
    ask(work.host)
    for name, title in CHOICES:
        work.write(f"notes/{name}.md", f"# {title}\n\nWhy. #decision\n")


def head(sent: Sent) -> str:
    """The head as a snapshot can have it: names of tasks, and days, are those of the run."""
    text = TASK.sub("t-abcd", message_text(sent.prompt[0]))
    return re.sub(r"(?m)^\d+ \w+:", "22 November:", text)


def in_use(start: Start) -> Host:
    """The second session of a project with notes, tasks, a page and finished work."""
    first = start("first", tools={"tasks": "on"})
    write_notes(first)
    first.run("bash", "31 passed in 2.10s", command="pytest -q tests/test_scheduler.py")
    first.run("bash", "[main 1a2b3c4] Keep due jobs", command="git commit -qam 'Keep due jobs'")
    for section, content in PAGE.items():
        task = {"action": "update_context", "section": section, "content": content}
        first.host.tool(f"u{section[0]}", "task-mutate", **task)
    finish(first.host)
    first.host.close()
    second = start("second", tools={"tasks": "on"}).host
    ask(second)
    made = second.tool(
        "n1",
        "task-mutate",
        action="create",
        title="Replay jobs that came due during a restart",
        description="The scheduler starts from now; jobs between its last tick and now are lost.",
    )
    second.add(assistant("I take it."))
    found = TASK.search(message_text(made))
    assert found, message_text(made)
    second.tool("n2", "task-mutate", action="claim", id=found[0])
    return second


def test_of_a_project_that_has_only_notes(start: Start, snapshot: SnapshotAssertion) -> None:
    first = start("first")
    write_notes(first)
    first.host.close()
    text = head(ask(start("second").host))
    assert len(text) <= 800
    assert text == snapshot


@pytest.mark.parametrize("tokens", [200, 1200])
def test_of_a_project_in_use(start: Start, snapshot: SnapshotAssertion, tokens: int) -> None:
    host = in_use(start)
    host.restart(head={"tokens": tokens})
    host.wait(3600)
    text = head(ask(host))
    assert len(text) <= tokens * 4
    assert text == snapshot
    assert tokens != Config().head.tokens or text in PAGE_OF_DOCS.read_text()


def test_of_what_the_user_leaves_out_there_is_nothing(start: Start) -> None:
    host = in_use(start)
    host.restart(head={"shows": ()})
    host.wait(3600)
    _, *said = (line for line in head(ask(host)).splitlines() if line.startswith("[foredeck]"))
    assert said == ["[foredeck] active task:"]
