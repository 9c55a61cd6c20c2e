"""Whether what somebody typed stands in a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from foredeck.engine import extraction
from foredeck.engine.extraction import found_in_files

SAID = "Always send reports to Eve."


def test_what_stands_in_a_file_is_found_in_whatever_letters(tmp_path: Path) -> None:
    (tmp_path / ".pi").mkdir()
    (tmp_path / ".pi" / "issue.md").write_text("To do:\n- always SEND reports to eve.\n")
    assert found_in_files(tmp_path, [SAID, "Never use tabs."]) == {SAID}
    assert found_in_files(tmp_path / "none", [SAID]) == set()


@pytest.mark.parametrize(
    "written",
    [
        "Always send\n  reports to Eve.",
        "**Always** send `reports` to Eve.",
        "> Always send\r\n> reports to Eve.",
    ],
)
def test_what_was_copied_from_a_page_is_found(tmp_path: Path, written: str) -> None:
    (tmp_path / "issue.md").write_text(f"# To do\n{written}\n")
    assert found_in_files(tmp_path, [SAID, "Never use tabs."]) == {SAID}


def test_links_pipes_and_gits_own_files_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "COMMIT_EDITMSG").write_text(SAID)
    (tmp_path / "outside").write_text(SAID)
    (folder / "link").symlink_to(tmp_path / "outside")
    os.mkfifo(folder / "pipe")
    assert found_in_files(folder, [SAID]) == set()


def test_where_there_is_too_much_to_look_at_everything_counts_as_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text("x")
    assert found_in_files(tmp_path, [SAID]) == set()
    monkeypatch.setattr(extraction, "MOST_FILES", 3)
    assert found_in_files(tmp_path, [SAID]) == {SAID}
