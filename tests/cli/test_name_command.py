"""`foredeck name`: showing and setting what stands for an object."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foredeck.cli.main import main
from foredeck.model.identity import hash_text


def described(capsys: pytest.CaptureFixture[str], home: Path, *arguments: str) -> Any:
    assert main(["name", "/repo/src/a.txt", *arguments, "--home", str(home), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_summary_is_set_shown_and_taken_away(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    plain = described(capsys, home)
    assert plain["of_type"]
    assert not plain["new"]
    given = described(capsys, home, "--short", "Where it starts")
    assert given["new"]
    assert given["view"] == [*plain["view"], "short_summary"]
    assert given["short_summary_hash"] == hash_text("Where it starts")
    assert given["metadata_view_hash"] != plain["metadata_view_hash"]
    assert main(["name", "/repo/src/a.txt", "--home", str(home)]) == 0
    told = capsys.readouterr().out
    assert "view: path, file_type, char_count, nickname, short_summary\n" in told
    assert "short summary: Where it starts\n" in told
    gone = described(capsys, home, "--short", "", "--view", "default")
    assert gone == {**plain, "new": True}


def test_a_field_that_there_is_not_is_refused(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    assert main(["name", "/repo/src/a.txt", "--view", "pathh", "--home", str(home)]) != 0
    assert "has no field 'pathh' to show. Did you mean path?" in capsys.readouterr().err
