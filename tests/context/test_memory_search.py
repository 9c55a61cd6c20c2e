"""`memory-search`: what the model asks, and what it reads as an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import ask, context_tool, go_on, use
from foredeck.context.tools import session_search
from foredeck.derived import follower
from foredeck.errors import ToolError

LOGIN = "export const LoginSchema = z.object({ email: z.string() })\n" + lines(40)


@pytest.fixture
def other(new_host: NewHost) -> Host:
    """A session of the same project that has built a login, and is over."""
    other = new_host(session="other").begin("Build the login form, please.")
    use(other, "w1", "write", "Successfully wrote 900 bytes", path="/repo/login.ts", content=LOGIN)
    use(other, "r1", "read", LOGIN, path="/repo/login.ts")
    use(other, "b1", "bash", "3 passed\n", command="npm test -- login")
    go_on(other, "Thanks.", answer="The login form is done; LoginSchema checks the address.")
    other.close()
    return other


@pytest.fixture
def host(other: Host, new_host: NewHost) -> Host:
    """A new session of the project."""
    del other
    return new_host(session="mine").begin("Build the login form.")


def found(host: Host, **arguments: Any) -> str:
    text: str = host.tool("c1", "memory-search", **arguments)["content"][0]["text"]
    return text


def handles(host: Host, **arguments: Any) -> list[str]:
    """What the hits are activated by."""
    lines = found(host, **arguments).split("\n")
    return [line.split(", ")[0] for line in lines if line.startswith(("@", "t-", "m-"))]


def test_a_new_session_finds_what_another_has_built(
    host: Host, snapshot: SnapshotAssertion
) -> None:
    assert found(host, query="LoginSchema") == snapshot


def test_hits_of_other_sessions_have_handles_here_which_outlive_a_crash(host: Host) -> None:
    handle, *_ = handles(host, query="npm test login", type="toolcall")
    assert handle == "@3::args.command"
    host.restart()
    assert context_tool(host, "c2", "activate", handle).text(2) == "npm test -- login"
    assert "3 passed" in context_tool(host, "c3", "activate", "@3").text(4)


def test_what_is_in_view_is_left_out(host: Host) -> None:
    use(host, "r2", "read", "const sessionKey = 1\n" * 9, path="/repo/key.ts")
    ask(host)
    assert found(host, query="sessionKey") == (
        "Nothing beyond what you see already (2 hits in view)."
    )


def test_what_memory_tools_answer_is_no_memory(host: Host) -> None:
    use(host, "s1", "memory-search", found(host, query="LoginSchema"), query="LoginSchema")
    ask(host)
    again = found(host, query="LoginSchema", limit=20)
    assert "memory-search" not in again
    assert again.splitlines()[-1].startswith("4 hits (1 weaker one left out);")
    assert "hits (1 more in view already);" in found(host, query="login").splitlines()[-1]


def test_neighbours_come_where_they_are_asked_for(host: Host, snapshot: SnapshotAssertion) -> None:
    assert found(host, query="npm test", type="toolcall", limit=1, messageRange=1) == snapshot


def test_scopes(other: Host, new_host: NewHost) -> None:
    del other
    elsewhere = new_host(session="elsewhere", cwd="/else").begin("Hello.")
    assert found(elsewhere, query="LoginSchema", scope="session") == (
        'Nothing found in this session. Try fewer or other words, or scope "all".'
    )
    assert found(elsewhere, query="LoginSchema") == (
        'Nothing found in this project. Try fewer or other words, or scope "all".'
    )
    assert "LoginSchema" in found(elsewhere, query="LoginSchema", scope="all")


def test_models_fill_in_what_they_like(host: Host) -> None:
    usual = found(host, query="LoginSchema", limit=1)
    assert found(host, action="search", query="LoginSchema", limit="1", scope="") == usual
    assert found(host, query="LoginSchema", limit=-4, messageRange=0.0) == usual


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, 'memory-search needs "query"'),
        ({"query": "  "}, 'memory-search needs "query"'),
        ({"query": "x", "scope": "world"}, "There is no scope 'world'"),
        ({"query": "x", "type": "email"}, "There is no type 'email'"),
        ({"query": "x", "limit": "many"}, "limit must be a number from 1 to 20, not 'many'"),
        ({"query": "x", "since": "soon"}, "since must be a day such as 2026-05-01"),
        ({"query": "x", "path": 3}, "path must be text, not 3"),
    ],
)
def test_what_cannot_be_asked_says_what_can(
    host: Host, arguments: dict[str, Any], text: str
) -> None:
    with pytest.raises(ToolError, match=text):
        found(host, **arguments)


def test_an_index_that_is_behind_is_said_to_be(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_search, "PATIENCE_S", -1.0)
    monkeypatch.setattr(follower, "BATCH", 4)
    answer = found(host, query="LoginSchema")
    assert answer.splitlines()[-1] == (
        "The index is still being made: what is not found may be there. Ask again in a while."
    )
    monkeypatch.undo()
    assert "LoginSchema" in found(host, query="LoginSchema")


def test_filters_narrow(host: Host) -> None:
    assert "@" not in found(host, query="LoginSchema", since="2030-01-01")
    assert "login.ts" in found(host, query="LoginSchema", path="login.ts", tool="write")


def test_tasks_are_found_by_what_came_of_them(new_host: NewHost, tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    first = new_host(session="first", cwd=str(tmp_path / "repo"), disk=True).begin()
    made = task(first, action="create", title="Build the login form", description="With zod.")
    name = made.split()[1]
    task(first, action="claim", id=name)
    use(first, "b1", "bash", "3 passed\n", command="npm test -- zebra")
    go_on(first, "Thanks for the zebra.", answer="The zebra test passes.")
    task(first, action="close", id=name, summary="LoginSchema checks the address.")
    first.close()
    second = new_host(session="second", cwd=str(tmp_path / "repo"), disk=True).begin()
    title, best, *passage, _ = found(second, query="address checks", type="task").split("\n")
    assert title == "Tasks:"
    assert best.startswith(f"{name}, ")
    assert best.endswith(", task closed [address, checks]")
    assert passage[-1] == " LoginSchema «checks» the «address»."
    older = found(second, query="login form", type="task")
    assert older.count(name) == 1, "a task is one hit, whatever became of it since"
    assert "task closed" in older
    said = found(second, query="zebra", task=name, limit=9)
    assert "The «zebra» test passes." in said
    assert "npm test" in said
    with pytest.raises(ToolError, match="Task not found: t-none"):
        found(second, query="zebra", task="t-none")


def task(host: Host, **input: Any) -> str:
    text: str = host.tool("t", "task-mutate", **input)["content"][0]["text"]
    return text
