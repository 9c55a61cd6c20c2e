"""What a session had in index, pool, active and pinned set: now, at a call, at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands import Foredeck
from context.driver import Host
from context.messages import lines
from context.scenes import ask, context_tool, finish
from context.working import Work


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A file is read (call 2) and pinned (call 3); then it is changed, and taken out of view
    (call 4); then it is deleted (call 5)."""
    folder = tmp_path / "repo"
    folder.mkdir()
    work = Work(Host(tmp_path / "home", session="first", cwd=str(folder.resolve()), disk=True))
    work.file("a.py", lines(40))
    ask(work.host)
    work.read("a.py")
    context_tool(work.host, "t1", "pin", "@3")
    work.file("a.py", lines(40, "other"))
    work.notice_changes()
    context_tool(work.host, "t2", "deactivate", "@3")
    finish(work.host)
    (folder / "a.py").unlink()
    work.notice_changes()
    ask(work.host)
    fork = work.host.fork("second")
    ask(fork)
    fork.close()
    work.host.close()
    return tmp_path / "home"


def sets_at(foredeck: Foredeck, home: Path, call: int) -> Any:
    return foredeck.json(home, "show", "first", "--call", str(call), "--sets")


def named(sets: Any) -> tuple[list[str], ...]:
    return tuple(sets[name] for name in ("pool", "active", "pinned"))


def entry(sets: Any, handle: str) -> Any:
    return next(entry for entry in sets["index"] if entry["handle"] == handle)


def test_the_sets_are_those_of_the_call(home: Path, foredeck: Foredeck) -> None:
    first, second, third, fourth, last = (sets_at(foredeck, home, call) for call in range(1, 6))
    assert [entry["handle"] for entry in first["index"]] == ["@1", "@2"]
    assert named(first) == ([], [], [])
    assert named(second) == (["@3", "@4"], ["@3"], [])
    assert named(third) == (["@3", "@4"], ["@3"], ["@3"])
    assert named(fourth) == (["@3", "@4"], [], [])
    found = [(s["state"], s["version"], s["deleted"]) for s in map(at_3, (second, third, fourth))]
    assert found == [("active", "v1", False), ("pinned", "v1", False), ("inactive", "v2", False)]
    assert (at_3(last)["version"], at_3(last)["deleted"]) == ("v3", True)


def at_3(sets: Any) -> Any:
    return entry(sets, "@3")


def test_a_person_reads_a_table(home: Path, foredeck: Foredeck) -> None:
    head, totals, _, columns, *rows = foredeck(
        home, "show", "first", "--call", "3", "--sets"
    ).splitlines()
    assert head.startswith("session first, call 3 of 5, ")
    assert totals == "5 objects in the index, 2 in the pool, 1 active, 1 pinned"
    assert columns.split() == ["handle", "state", "version", "object"]
    assert [row.split()[:3] for row in rows[2:4]] == [
        ["@3", "pinned", "v1"],
        ["@4", "inactive", "v1"],
    ]
    assert rows[2].endswith("/repo/a.py")
    newest = foredeck(home, "show", "first", "--sets").splitlines()
    assert ", deleted " in newest[6]
    assert newest[6].endswith("/repo/a.py")


def test_a_session_is_shown_as_its_sets(home: Path, foredeck: Foredeck) -> None:
    shown = foredeck(home, "show", "first", "--sets")
    assert foredeck(home, "cat", "session:first") == shown
    data = foredeck.json(home, "cat", "session:first")
    assert data["content"] == shown
    assert named(data) == named(sets_at(foredeck, home, 5))
    assert (data["type"], data["call"]) == ("session", 5)


def test_a_fork_has_the_sets_that_it_inherited(home: Path, foredeck: Foredeck) -> None:
    data = foredeck.json(home, "show", "second", "--sets")
    assert data["pool"] == ["@3", "@4"]
    assert at_3(data)["version"] == "v3"


def test_a_session_at_a_time_is_that_of_its_last_call_by_then(
    home: Path, foredeck: Foredeck
) -> None:
    versions = foredeck.json(home, "history", "session:first")["versions"]
    begun = json.loads(
        foredeck(home, "cat", "session:first", "--json", "--at", versions[0]["token"])
    )
    assert begun["call"] in (None, 1)
    assert named(begun) == ([], [], [])
    now = json.loads(foredeck(home, "cat", "session:first", "--json", "--at", "now"))
    assert now["call"] == 5


def test_a_session_before_its_first_call_has_empty_sets(tmp_path: Path, foredeck: Foredeck) -> None:
    host = Host(tmp_path / "home", session="first")
    host.observe(
        {
            "toolCallId": "c0",
            "toolName": "bash",
            "content": [{"type": "text", "text": "early"}],
            "isError": False,
        },
        {"command": "ls"},
    )
    host.close()
    text = foredeck(tmp_path / "home", "cat", "session:first")
    assert text.startswith("session first, before its first call\n")
    assert ", 0 in the pool, 0 active, 0 pinned" in text


def test_what_is_always_in_view_is_active_and_locked(home: Path, foredeck: Foredeck) -> None:
    sets = sets_at(foredeck, home, 2)
    chats = [each for each in sets["index"] if each["type"] in ("chat", "system_prompt")]
    assert len(chats) == 2
    assert [(each["state"], each["locked"]) for each in chats] == [("active", True)] * 2
    assert not entry(sets, "@3")["locked"]
    assert foredeck(home, "show", "first", "--call", "2", "--sets").count(", locked ") == 2
    # A parent's chat is of another session.
    index = foredeck.json(home, "show", "second", "--sets")["index"]
    others = {each["object"]: each["locked"] for each in index if each["type"] == "chat"}
    assert others["chat:second"]
    assert not others.get("chat:first", False)
