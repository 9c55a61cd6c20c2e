"""Tasks in a session: its tools, its active task, and what is said while it works on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.scenes import ask, go_on, use
from context.sent import message_text
from foredeck.errors import ToolError
from foredeck.tasks.board import note_claim
from foredeck.tasks.session import SessionTasks


def active_task(host: Host) -> str | None:
    """Id of the task that the session works on."""
    task = host.opened.facilities.turn_fields()["task"]
    assert task is None or isinstance(task, str)
    return task


@pytest.fixture
def host(new_host: NewHost, tmp_path: Path) -> Host:
    return opened(new_host, tmp_path, "first")


def opened(new_host: NewHost, folder: Path, session: str) -> Host:
    """A session with all its facilities, in a folder of the disk."""
    (folder / "repo").mkdir(exist_ok=True)
    host = new_host(session=session, cwd=str(folder / "repo"), disk=True)
    host.sections = None
    return host


def said(host: Host, tool: str, **input: Any) -> str:
    text: str = host.tool("t", tool, **input)["content"][0]["text"]
    return text


def planned(host: Host, title: str = "Fix the login") -> str:
    return said(host, "task-mutate", action="create", title=title).split()[1]


def tasks_of_turns(host: Host) -> list[str | None]:
    heads = host.store.query("turn", {"session": host.session})
    return [head.fields.get("task") for head in heads]


def test_what_is_said_while_a_task_is_active_belongs_to_it(host: Host) -> None:
    ask(host, "Look around.")
    go_on(host, "Fix the login.", answer="Done.")
    name = planned(host)
    said(host, "task-mutate", action="claim", id=name)
    use(host, "r1", "bash", "ok\n", command="make")
    ask(host)
    said(host, "task-mutate", action="close", id=name, summary="It redirects once.")
    go_on(host, "Thanks.", answer="Fixed.")
    (id,) = (head.id for head in host.store.query("task"))
    worked = said(host, "task-query", action="show", id=name).partition("worked on in: ")[2]
    assert worked == f"chat:{host.session} turn 2"
    assert "Fix the login." in said(host, "activate", id=worked)
    tagged = tasks_of_turns(host)
    assert tagged[0] is None
    assert id in tagged
    assert tagged[-1] is None


def test_another_session_finds_the_task_and_takes_it_when_the_first_ends(
    host: Host, new_host: NewHost, tmp_path: Path
) -> None:
    ask(host, "Plan.")
    name = planned(host)
    said(host, "task-mutate", action="claim", id=name)
    other = opened(new_host, tmp_path, "second")
    ask(other, "Go on.")
    with pytest.raises(ToolError, match="Already claimed by session first"):
        said(other, "task-mutate", action="claim", id=name)
    host.close()
    assert "has ended" in said(other, "task-query", action="ready")
    assert said(other, "task-mutate", action="claim", id=name).startswith("Claimed")
    assert active_task(other) is not None
    assert active_task(host) is None


def test_a_session_goes_on_with_its_task_after_a_restart(host: Host) -> None:
    ask(host, "Plan.")
    said(host, "task-mutate", action="claim", id=planned(host))
    active = active_task(host)
    host.restart()
    ask(host, "Go on.")
    assert active_task(host) == active is not None
    names = {section.name: section.text(500) for section in host.opened.facilities.sections}
    assert "Fix the login" in names["active task"]


def test_a_message_is_linked_by_its_handle(host: Host, new_host: NewHost, tmp_path: Path) -> None:
    """Another session reads a name under which it opens the same, and not its own handle."""
    ask(host, "Plan.")
    use(host, "r1", "bash", "ok\n" * 50, command="make")
    ask(host)
    name = planned(host)
    assert said(host, "task-mutate", action="link", id=name, messageId="@3") == (
        f"Linked @3 to {name}."
    )
    with pytest.raises(ToolError, match="@99"):
        said(host, "task-mutate", action="link", id=name, messageId="@99 turn 3")
    other = opened(new_host, tmp_path, "second")
    for each in (host, other):
        ask(each, "Go on.")
        linked = said(each, "task-query", action="show", id=name).partition("linked: ")[2]
        assert linked.splitlines() == [f"{host.session}:@3"]
    assert said(other, "activate", id=linked).count("ok") == 50


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("@3 turn 1", "@3 is a toolcall: only a chat has turns."),
        ("@3 chars 900-950", "@3 has 150 characters."),
        ("@2 turn 99", "turns 99"),
    ],
)
def test_a_part_that_there_is_not_is_not_linked(host: Host, part: str, why: str) -> None:
    ask(host, "Plan.")
    use(host, "r1", "bash", "ok\n" * 50, command="make")
    ask(host)
    name = planned(host)
    with pytest.raises(ToolError, match=why):
        said(host, "task-mutate", action="link", id=name, messageId=part)
    assert "linked" not in said(host, "task-query", action="show", id=name)
    for there in ("@2 turn 1", "@2 turn 2", "@3 chars 1-5"):
        linked = said(host, "task-mutate", action="link", id=name, messageId=there)
        assert linked == f"Linked {there} to {name}."


def test_a_task_is_made_from_a_message(host: Host) -> None:
    ask(host, "Plan.")
    use(host, "r1", "bash", "ok\n" * 50, command="make")
    ask(host)
    with pytest.raises(ToolError, match="@99"):
        said(host, "task-mutate", action="create", title="Lost", messageId="@99")
    assert host.store.query("task") == []
    made = said(host, "task-mutate", action="create", title="Make", messageId="@3").split()[1]
    shown = said(host, "task-query", action="show", id=made)
    assert shown.endswith(f"linked: {host.session}:@3")


def test_the_model_is_told_once_what_became_of_a_provisional_claim(host: Host) -> None:
    ask(host, "Plan.")
    name = planned(host)
    tasks = host.opened.facilities.part(SessionTasks)
    (id,) = (head.id for head in host.store.query("task"))
    note_claim(host.state.objects.store, host.session, id, "pending", 1)
    tasks.active.set(id)
    told: list[str] = []
    host.state.inbox.notify = told.append
    ask(host, "Go on.")
    said = f"The database is back: your provisional claim of {name} holds."
    assert told == [said]
    assert active_task(host) == id
    use(host, "b1", "bash", "ok\n", command="make")
    prompt = "\n".join(map(message_text, ask(host, "And now?").prompt))
    assert prompt.count(f"[foredeck] {said}") == 1
    assert told == [said]


def test_switched_off_there_are_none(new_host: NewHost, tmp_path: Path) -> None:
    host = new_host(cwd=str(tmp_path), disk=True, tools={"tasks": "off"})
    host.sections = None
    ask(host, "Plan.")
    assert host.opened.facilities.part(SessionTasks) is None
    with pytest.raises(ToolError, match="no tool 'task-query'"):
        said(host, "task-query", action="ready")
