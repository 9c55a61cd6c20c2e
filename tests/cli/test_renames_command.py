"""`foredeck index --renamed`: renames that nobody saw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foredeck.cli.main import main

Out = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files that were taken in, and that are gone; what has their bytes is elsewhere."""
    folder = tmp_path / "repo"
    (folder / "old").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path / "home"))
    for name in ("a", "b"):
        (folder / "old" / f"{name}.txt").write_text(f"content of {name}\n")
    (folder / "refers.md").write_text("[[old/a.txt]]")
    return folder


def asked(capsys: Out, *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def said(capsys: Out, *arguments: str, code: int = 0) -> str:
    assert main([*arguments]) == code
    out = capsys.readouterr()
    return out.err if code else out.out


def lost(capsys: Out, folder: Path) -> None:
    """Have the old names taken for deleted before the new ones are met."""
    asked(capsys, "index", ".")
    moved = folder.parent / "elsewhere"
    (folder / "old").rename(moved)
    asked(capsys, "index", ".")
    moved.rename(folder / "new")
    asked(capsys, "index", ".")


def test_what_was_lost_is_repaired(folder: Path, capsys: Out) -> None:
    asked(capsys, "index", ".")
    said(capsys, "name", "old/a.txt", "spec")
    lost(capsys, folder)
    told = said(capsys, "index", "--renamed", "old/a.txt", "new/a.txt")
    assert told == f"{folder}/old/a.txt was renamed to {folder}/new/a.txt.\n"
    assert "old/a.txt" in said(capsys, "history", "new/a.txt")
    assert said(capsys, "cat", "spec") == "content of a\n"
    assert f"{folder}/new/a.txt" in said(capsys, "history", "spec")
    back = asked(capsys, "graph", "--backlinks", "new/a.txt")["nodes"]
    assert [node["path"] for node in back] == [f"{folder}/refers.md"]


def test_of_several_the_user_says_which(folder: Path, capsys: Out) -> None:
    (folder / "old" / "b.txt").write_text("content of a\n")
    asked(capsys, "index", ".")
    (folder / "old" / "a.txt").rename(folder / "c.txt")
    (folder / "old" / "b.txt").rename(folder / "d.txt")
    unclear = asked(capsys, "index", ".")["unclear"]
    assert len(unclear) == 2
    assert f"{folder}/old/a.txt is gone, and its bytes are in {folder}/c.txt, " in unclear[0]
    assert "still exists, so it was not renamed" in said(
        capsys, "index", "--renamed", "c.txt", "d.txt", code=1
    )
    said(capsys, "index", "--renamed", "old/a.txt", "d.txt")
    assert "old/a.txt" in said(capsys, "history", "d.txt")


def test_index_finds_a_rename_to_a_name_that_it_took_in_first(folder: Path, capsys: Out) -> None:
    asked(capsys, "index", "old")
    (folder / "new").mkdir()
    (folder / "old" / "a.txt").rename(folder / "new" / "a.txt")
    asked(capsys, "index", "new")
    assert asked(capsys, "index", "old")["deleted"] == 1
    assert "old/a.txt" in said(capsys, "history", "new/a.txt")
