"""`foredeck search` and `foredeck doctor --rebuild`, and what forgetting leaves in the index."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from commands import Foredeck
from search.sessions import Talk, searched


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A state folder with two sessions in two projects."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with searched(tmp_path / "home") as stored:
        first = Talk(stored.store, "first-session", cwd=str(tmp_path / "first"))
        first.say(user="where is the marzipan", time_ms=1_770_000_000_000)
        first.run("bash", "no marzipan here", failed=True, command="ls")
        second = Talk(stored.store, "second-session", cwd=str(tmp_path / "second"))
        second.say(assistant="marzipan_box is empty", time_ms=1_770_000_000_000)
    return tmp_path / "home"


def test_json(home: Path, foredeck: Foredeck) -> None:
    answer = foredeck.json(home, "search", "where marzipan")
    assert answer["total"] == 3
    assert answer["hits"][0] | {"score": 1.0} == {
        "session": "first-session",
        "message": "turn:first-session:1",
        "object": "chat:first-session",
        "type": "message",
        "role": "user",
        "time_ms": 1_770_000_000_000,
        "score": 1.0,
        "snippet": "where is the marzipan",
        "matches": [[13, 21]],
        "place": "message 1",
        "also": 0,
        "path": None,
        "task": None,
    }
    assert answer["hits"][0]["score"] > answer["hits"][1]["score"] > 0


def test_explain_says_what_was_looked_for_and_how_a_rank_came_about(
    home: Path, foredeck: Foredeck
) -> None:
    answer = foredeck.json(home, "search", "marzipan_box", "--explain")
    assert answer["looked_for"] == ["marzipan box", "marzipan", "box"]
    why = answer["hits"][0]["why"]
    assert why["words"] == ["marzipan box"]
    evidence = why["own"] + why["lent"] + why["dated"]
    expected = evidence * why["weight"] * why["recency"] * why["held_back"]
    assert answer["hits"][0]["score"] == pytest.approx(expected, abs=0.01)


def test_a_narrow_screen_shows_how_a_rank_came_about(
    home: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = foredeck(home, "search", "marzipan_box", "--explain")
    assert re.search(r"^ {6}\(\d+\.\d\d \+ .* dated\) x .* = \d+\.\d\d$", text, re.MULTILINE)


def test_a_file_that_no_session_has_met_is_shown_with_its_path(
    home: Path, tmp_path: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(len(str(tmp_path)) + 60))
    note = tmp_path / "n.md"
    note.write_text("about frangipane")
    foredeck(home, "index", str(note))
    heading = foredeck(home, "search", "frangipane").splitlines()[3]
    assert note.name in heading
    assert foredeck(home, "cat", heading.split()[0]) == "about frangipane"


def test_scopes(home: Path, foredeck: Foredeck) -> None:
    project = ("--scope", "project", "--project", str(home.parent / "second"))
    assert [
        hit["session"] for hit in foredeck.json(home, "search", "marzipan", *project)["hits"]
    ] == ["second-session"]
    assert foredeck.json(home, "search", "marzipan", "--session", "first")["total"] == 2
    assert foredeck.json(home, "search", "marzipan", "--tool", "bash")["total"] == 1
    assert foredeck.json(home, "search", "marzipan", "--since", "2100-01-01")["total"] == 0
    foredeck(home, "search", "marzipan", "--scope", "session", code=2)
    foredeck(home, "search", "marzipan", "--session", "none", code=4)


def test_a_task_that_a_person_made_is_found_in_its_project(
    home: Path, monkeypatch: pytest.MonkeyPatch, foredeck: Foredeck
) -> None:
    places = [home.parent / "by-hand", home.parent / "elsewhere"]
    for place in places:
        place.mkdir()
    monkeypatch.chdir(places[0])
    foredeck(home, "tasks", "new", "Fill the truffles")
    totals = [
        foredeck.json(home, "search", "truffles", "--scope", "project", "--project", place)["total"]
        for place in places
    ]
    assert totals == [1, 0]


def test_nothing_found_is_no_failure(home: Path, foredeck: Foredeck) -> None:
    assert foredeck(home, "search", "nougat").startswith("Nothing found. ")
    foredeck(home, "search", '"(')


def test_forgetting_takes_a_session_out_of_the_index_at_once(
    home: Path, foredeck: Foredeck
) -> None:
    assert foredeck.json(home, "search", "marzipan")["total"] == 3
    (file,) = (home / "layers").glob("search-*.sqlite")
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE not_made_again (id INTEGER)")
    assert b"first-session" in index_bytes(home)
    foredeck(home, "forget", "first-session", "--yes")
    left = index_bytes(home)
    for text in (b"where", b"here", b"first-session", b"find", b"/first"):
        assert text not in left
    assert b"marzipan" in left, "of the other session"
    assert [hit["session"] for hit in foredeck.json(home, "search", "marzipan")["hits"]] == [
        "second-session"
    ]
    assert foredeck.json(home, "search", "where")["total"] == 0
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("SELECT count(*) FROM not_made_again").fetchone() == (0,)


def index_bytes(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in (home / "layers").iterdir())


def test_rebuilding_makes_a_damaged_index_again(home: Path, foredeck: Foredeck) -> None:
    before = foredeck.json(home, "search", "marzipan")
    (file,) = (home / "layers").glob("*.sqlite")
    with file.open("r+b") as damaged:
        damaged.seek(os.path.getsize(file) // 2)  # noqa: PTH202
        damaged.write(b"\xff" * 8192)
    (layer,) = foredeck.json(home, "doctor", "--rebuild", "search")["layers"]
    assert (layer["layer"], layer["file"]) == ("search", str(file))
    assert foredeck.json(home, "search", "marzipan") == before


def test_vacuum_brings_the_index_together_and_keeps_what_it_finds(
    home: Path, foredeck: Foredeck
) -> None:
    with searched(home) as stored:
        talk = Talk(stored.store, "third-session")
        for number in range(30):  # each a piece of its own
            talk.say(user=f"marzipan number {number}, in the drawer of cabinet {number * 7}")
            stored.found("cabinet")
    (index,) = (home / "layers").glob("search-*.sqlite")
    assert _pieces(index) > 1
    before = foredeck.json(home, "search", "marzipan", "--explain")
    (told,) = foredeck.json(home, "doctor", "--vacuum")["layers"]
    assert told["file"] == str(index)
    assert told["bytes_after"] <= told["bytes_before"]
    assert _pieces(index) == 1
    assert foredeck.json(home, "search", "marzipan", "--explain") == before


def _pieces(index: Path) -> int:
    """In how many pieces the full-text index lies."""
    with closing(sqlite3.connect(index)) as db:
        return int(db.execute("SELECT count(DISTINCT segid) FROM content_idx").fetchone()[0])
