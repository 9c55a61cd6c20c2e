"""`foredeck index --renamed`: renames that nobody saw."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import Foredeck


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


def lost(foredeck: Foredeck, folder: Path) -> None:
    """Have the old names taken for deleted before the new ones are met."""
    foredeck.json("index", ".")
    moved = folder.parent / "elsewhere"
    (folder / "old").rename(moved)
    foredeck.json("index", ".")
    moved.rename(folder / "new")
    foredeck.json("index", ".")


def test_what_was_lost_is_repaired(folder: Path, foredeck: Foredeck) -> None:
    foredeck.json("index", ".")
    foredeck("name", "old/a.txt", "spec")
    lost(foredeck, folder)
    told = foredeck("index", "--renamed", "old/a.txt", "new/a.txt")
    assert told == f"{folder}/old/a.txt was renamed to {folder}/new/a.txt.\n"
    assert "old/a.txt" in foredeck("history", "new/a.txt")
    assert foredeck("cat", "spec") == "content of a\n"
    assert f"{folder}/new/a.txt" in foredeck("history", "spec")
    back = foredeck.json("graph", "--backlinks", "new/a.txt")["nodes"]
    assert [node["path"] for node in back] == [f"{folder}/refers.md"]


def test_of_several_the_user_says_which(folder: Path, foredeck: Foredeck) -> None:
    (folder / "old" / "b.txt").write_text("content of a\n")
    foredeck.json("index", ".")
    (folder / "old" / "a.txt").rename(folder / "c.txt")
    (folder / "old" / "b.txt").rename(folder / "d.txt")
    unclear = foredeck.json("index", ".")["unclear"]
    assert len(unclear) == 2
    assert f"{folder}/old/a.txt is gone, and its bytes are in {folder}/c.txt, " in unclear[0]
    assert "still exists, so it was not renamed" in foredeck(
        "index", "--renamed", "c.txt", "d.txt", code=1
    )
    foredeck("index", "--renamed", "old/a.txt", "d.txt")
    assert "old/a.txt" in foredeck("history", "d.txt")


def test_index_finds_a_rename_to_a_name_that_it_took_in_first(
    folder: Path, foredeck: Foredeck
) -> None:
    foredeck.json("index", "old")
    (folder / "new").mkdir()
    (folder / "old" / "a.txt").rename(folder / "new" / "a.txt")
    foredeck.json("index", "new")
    assert foredeck.json("index", "old")["deleted"] == 1
    assert "old/a.txt" in foredeck("history", "new/a.txt")
