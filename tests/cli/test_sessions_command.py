"""`foredeck sessions` and `foredeck show`."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from stored_session import SESSION, START_MS, make_home

from commands import Foredeck


def test_sessions_tells_what_is_stored(home: Path, foredeck: Foredeck) -> None:
    value: Any = foredeck.json(home, "sessions")
    assert value["sessions"][0].pop("figure")["text"].endswith("with plain Pi, over 5 calls")
    assert value == {
        "sessions": [
            {
                "session": SESSION,
                "title": "Read it, \ud83d please.",
                "cwd": "/repo",
                "project": "/repo",
                "calls": 5,
                "messages": 5,
                "tool_calls": 4,
                "first_ms": START_MS + 1000,
                "last_ms": START_MS + 9000,
                "parent": None,
                "started_by": None,
                "harness": "pi",
                "private": False,
                "ingested": False,
                "host_file": None,
                "gone": False,
                "objects": 7,
            }
        ]
    }
    text = foredeck(home, "sessions")
    assert text.splitlines()[0] == "1 session, the latest first."
    assert "  saved  " in text.splitlines()[2]
    assert text.splitlines()[3].startswith(f"{SESSION[:8]}  ")


def test_a_narrow_screen_leaves_out_columns_and_no_title(
    home: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    for width, columns in ((80, "last used msgs saved project"), (50, "last used saved")):
        monkeypatch.setenv("COLUMNS", str(width))
        _, _, head, row, *_ = foredeck(home, "sessions").splitlines()
        assert " ".join(head.split()) == f"session {columns} title"
        assert "Read it" in row
        assert len(row) <= width


def test_the_newest_session_stands_first(tmp_path: Path, foredeck: Foredeck) -> None:
    old = make_home(tmp_path / "1", "old-one")
    new = make_home(tmp_path / "2", "new", START_MS * 2, "call_")
    for session, source in (("old-one", old), ("new", new)):
        foredeck(source, "export", session, tmp_path / session)
        foredeck(tmp_path / "both", "import", tmp_path / session)
    value = foredeck.json(tmp_path / "both", "sessions")
    assert [session["session"] for session in value["sessions"]] == ["new", "old-one"]


def test_show_prints_a_call_for_people(home: Path, foredeck: Foredeck) -> None:
    text = foredeck(home, "show", SESSION, "--call", "2")
    assert f"session {SESSION}, call 2 of 5" in text
    assert "--- 1 user" in text
    assert '[call toolu_a] read {"path": "src/a.txt"}' in text
    assert "--- 3 toolResult read toolu_a [edited by foredeck]\n@3\none\ntwo" in text
    assert "toolu_b" not in text


def test_show_without_a_call_is_the_last_and_takes_the_start_of_an_id(
    home: Path, foredeck: Foredeck
) -> None:
    text = foredeck(home, "show", SESSION[:6])
    assert "call 5 of 5" in text
    assert "toolResult bash toolu_c failed" in text
    assert "1 failed \\x1b[31mred" in text
    assert foredeck.json(home, "show", SESSION)["call"] == 5


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["show", "0199cccd"], 4, f"no session '0199cccd' is stored. Nearest: {SESSION}"),
        (["show", "019"], 4, "'019' is too short: type 4 characters of the id, or more."),
        (["show", "dddd"], 4, "no session 'dddd' is stored. `foredeck sessions` lists all."),
        (["show", SESSION, "--call", "6"], 4, "has no call 6; its calls: 1 to 5"),
        (["show", SESSION, "--call", "0"], 2, "must be a whole number of at least 1"),
        (["show"], 2, "which session?"),
    ],
)
def test_what_is_not_there_is_told(
    home: Path, arguments: list[str], code: int, told: str, foredeck: Foredeck
) -> None:
    assert told in foredeck.refused(home, *arguments, code=code)


@pytest.mark.parametrize(
    "arguments",
    [
        ["sessions"],
        ["show", "s"],
        ["history", "x"],
        ["cat", "x"],
        ["history", "--diff", "x"],
        ["export", "s", "-"],
        ["name", "x", "y"],
        ["observations", "s"],
        ["working"],
    ],
)
def test_a_store_that_is_missing_foreign_or_damaged_is_exit_code_3(
    tmp_path: Path, arguments: list[str], foredeck: Foredeck
) -> None:
    assert "nothing is stored yet" in foredeck.refused(tmp_path, *arguments, code=3)
    assert list(tmp_path.iterdir()) == []
    database = tmp_path / "foredeck.db"
    with sqlite3.connect(database) as other:
        other.execute("CREATE TABLE theirs (a)")
    other.close()
    assert "another program" in foredeck.refused(tmp_path, *arguments, code=3)
    database.write_bytes(b"no database at all" * 500)
    assert "damaged" in foredeck.refused(tmp_path, *arguments, code=3)
