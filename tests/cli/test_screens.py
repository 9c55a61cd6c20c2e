"""What the command line shows, word for word: its help, and screens of a store made for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_screen import Screen
from stored_session import make_home
from syrupy.assertion import SnapshotAssertion

from commands import Foredeck

WIDTH = 80


def test_help(foredeck: Foredeck, snapshot: SnapshotAssertion) -> None:
    text = foredeck("--help")
    assert re.sub(r"Measure and test foredeck itself.*?\n\n", "", text, flags=re.S) == snapshot


@pytest.mark.parametrize(
    "line",
    [
        "sessions",
        "search filler",
        "search no-such-word",
        "graph /repo/src/a.txt",
        "graph --backlinks /repo/src/a.txt",
        "history --diff /repo/src/a.txt 1 2",
        "objects",
        "show 0199 --sets",
        "show 0199 --branches",
    ],
)
def test_a_screen_says_first_what_it_found_and_fits_the_terminal(
    line: str,
    home: Path,
    foredeck: Foredeck,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    text = foredeck(home, *line.split())
    assert max(map(len, text.splitlines())) <= WIDTH
    assert re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "(when)", text) == snapshot


def test_the_settings_fit_the_terminal(
    home: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    settings, _ = foredeck(home, "config", "--set", f"xtdb.url=http://{'a' * 90}").split("\n\n")
    assert max(map(len, settings.splitlines())) <= WIDTH
    assert "…" not in settings


def test_the_first_search_says_that_it_builds_its_index(tmp_path: Path, foredeck: Foredeck) -> None:
    home = str(make_home(tmp_path))
    foredeck("search", "filler", "--home", home)
    assert "building the search index" in foredeck.err
    foredeck("search", "filler", "--home", home)
    assert foredeck.err == ""


def test_an_empty_state_folder_names_ingest_and_stays_empty(
    tmp_path: Path, foredeck: Foredeck
) -> None:
    assert "`foredeck ingest`" in foredeck(tmp_path, "search", "filler", code=3)
    assert list(tmp_path.iterdir()) == []


MISSING = "/no-such-folder/file"


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        (
            4,
            [
                f"export 0199 {MISSING}",
                f"import {MISSING}",
                f"backup {MISSING}",
                f"ingest {MISSING}",
                f"cost --histories {MISSING}",
                "cat 0199:@5::nope",
                "history /repo/src/a.txt 1 9",
            ],
        ),
        (
            2,
            [
                "index",
                "search  ",
                "trace  ",
                "show 0199 --at soon",
                "search x --since soon",
                "carry 0199 --to vim",
                "index --renamed one",
            ],
        ),
    ],
)
def test_the_same_fault_has_the_same_exit_code(
    code: int, lines: list[str], home: Path, foredeck: Foredeck
) -> None:
    for line in lines:
        assert len(foredeck(home, *line.split(" "), code=code).splitlines()) <= 2, line


def test_an_error_fits_the_terminal(home: Path) -> None:
    text, code = Screen(home, ["show", "0199", "--at", "soon"], {}).end()
    assert max(map(len, text.splitlines())) <= WIDTH
    assert len(text.splitlines()) > 1
    assert code == 2
