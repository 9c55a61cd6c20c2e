"""`foredeck name`: showing and setting what stands for an object."""

from __future__ import annotations

from pathlib import Path

from commands import Foredeck
from foredeck.model.identity import hash_text


def test_a_summary_is_set_shown_and_taken_away(foredeck: Foredeck, home: Path) -> None:
    plain = foredeck.json(home, "name", "/repo/src/a.txt")
    assert plain["of_type"]
    assert not plain["new"]
    given = foredeck.json(home, "name", "/repo/src/a.txt", "--short", "Where it starts")
    assert given["new"]
    assert given["view"] == [*plain["view"], "short_summary"]
    assert given["short_summary_hash"] == hash_text("Where it starts")
    assert given["metadata_view_hash"] != plain["metadata_view_hash"]
    told = foredeck(home, "name", "/repo/src/a.txt")
    assert "view: path, file_type, char_count, nickname, short_summary\n" in told
    assert "short summary: Where it starts\n" in told
    gone = foredeck.json(home, "name", "/repo/src/a.txt", "--short", "", "--view", "default")
    assert gone == {**plain, "new": True}


def test_a_field_that_there_is_not_is_refused(foredeck: Foredeck, home: Path) -> None:
    said = foredeck(home, "name", "/repo/src/a.txt", "--view", "pathh", code=1)
    assert "has no field 'pathh' to show. Did you mean path?" in said
