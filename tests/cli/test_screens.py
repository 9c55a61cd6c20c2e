"""What the command line shows, word for word: its help, and screens of a store made for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from stored_session import make_home, run
from syrupy.assertion import SnapshotAssertion

from foredeck.cli.main import main

WIDTH = 80


def test_help(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    text = run(capsys, "--help")
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
    ],
)
def test_a_screen_says_first_what_it_found_and_fits_the_terminal(
    line: str,
    home: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    text = run(capsys, *line.split(), "--home", str(home))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "(when)", text) == snapshot


def test_the_first_search_says_that_it_builds_its_index(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = str(make_home(tmp_path))
    assert main(["search", "filler", "--home", home]) == 0
    assert "building the search index" in capsys.readouterr().err
    assert main(["search", "filler", "--home", home]) == 0
    assert capsys.readouterr().err == ""


def test_an_empty_state_folder_names_ingest_and_stays_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", "filler", "--home", str(tmp_path)]) == 3
    assert "`foredeck ingest`" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
