"""What the user reads of an entry."""

from __future__ import annotations

from pathlib import Path

import pytest

from foredeck.config import Config
from foredeck.memory.describing import Describer
from foredeck.memory.ground import GroundReader
from foredeck.memory.sections import day
from foredeck.sources.filesystem import open_filesystems
from memory.desk import Table, literal, new

PROJECT = "0123456789abcdef" * 4
MARK = "unused for long"


@pytest.fixture
def ground(table: Table, tmp_path: Path) -> GroundReader:
    return GroundReader(table.store, open_filesystems(Config(home=tmp_path), str(tmp_path)))


def test_a_project_is_named_once_a_session_has_worked_in_it_and_else_by_its_id(
    table: Table, ground: GroundReader
) -> None:
    kept = table.model.add(literal(project=PROJECT)).entry
    entry = table.user.set_scope(kept.id, PROJECT).entry
    for names, name in ((dict, "0123456789ab"), (lambda: {PROJECT: "harbour"}, "harbour")):
        told = Describer(table.user, ground, table.clock(), names).details(entry)
        assert f"in the project {name}\n" in f"{told}\n"


def test_an_entry_says_when_it_was_learned_and_what_it_was_promoted_from(
    table: Table, ground: GroundReader
) -> None:
    found = table.model.add(new("Osaka sold most", category="finding", tags=("sales",))).entry
    said = table.model.add(new("Tables are loaded nightly")).entry
    pinned = [table.user.pin(each.id, "decision", PROJECT).entry for each in (found, said)]

    describe = Describer(table.user, ground, table.clock())
    names = [table.user.name(each.id) for each in (found, said)]
    learned = f"learned {day(found.document.learned_ms)}"
    lines = [describe.line(each) for each in pinned]
    assert f"Osaka sold most #sales  ({learned}; promoted from finding {names[0]};" in lines[0]
    assert f"({learned}; promoted from session entry {names[1]};" in lines[1]
    assert describe.details(pinned[0]).count("learned ") == 1
    assert describe.json(pinned[0])["promoted_from"] == f"finding {names[0]}"
    assert "promoted" not in describe.line(said)


def test_only_the_users_own_word_is_to_be_looked_at_again(
    table: Table, ground: GroundReader
) -> None:
    stated = table.model.add(literal()).entry
    derived = table.model.add(new("The build is slow")).entry

    assert MARK not in Describer(table.user, ground, table.clock()).line(stated)
    table.clock.pass_days(365)
    describe = Describer(table.user, ground, table.clock())
    assert MARK in describe.line(stated)
    assert MARK not in describe.line(derived)
    assert (describe.json(stated)["review"], describe.json(derived)["review"]) == (True, False)
