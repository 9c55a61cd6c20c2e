"""`foredeck observations`: what was noted, shown and changed."""

from __future__ import annotations

import io
import json
from contextlib import closing
from pathlib import Path

import pytest

from commands import Foredeck
from foredeck.config import Config
from foredeck.store.place import open_store
from observations.desk import block, noted, reflect
from search.sessions import Talk


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path))
    with closing(open_store(Config(home=tmp_path))) as store:
        Talk(store, "s")
        chat = noted(store, 9)
        reflect(store, chat, block("low change: Agent looked at src/c1.py and src/made_up.py"))
    return tmp_path


@pytest.mark.usefixtures("home")
def test_all_is_listed_with_what_it_stands_for(foredeck: Foredeck) -> None:
    out = foredeck("observations", "s").splitlines()
    assert "reflection 1 of 3 observations" in out[0]
    assert "names left out, by test/model" in out[0]
    assert any("(not in the sources: src/c1.py, src/made_up.py)" in line for line in out)
    assert any("turn 1, default, 3,004 tokens in" in line for line in out)
    assert out[-1] == "27,004 tokens of chat observed; 72 names are in no source"


@pytest.mark.usefixtures("home")
def test_programs_are_told_every_field(foredeck: Foredeck) -> None:
    found = json.loads(foredeck("observations", "s", "--json"))
    assert (found["session"], found["observed_tokens"]) == ("s", 27_004)
    assert found["observing"]["outcome"] == "done"
    assert len(found["observations"]) == 9
    first, reflection = found["observations"][0], found["reflections"][0]
    fields = ("mode", "priority", "category", "content", "files", "line_numbers", "mode_specific")
    assert {*fields} <= {*first}
    assert first["files"][0] == "src/c0.py"
    assert reflection["replaces"] == [one["id"] for one in found["observations"][:3]]


@pytest.mark.usefixtures("home")
def test_one_is_edited_and_deleted(monkeypatch: pytest.MonkeyPatch, foredeck: Foredeck) -> None:
    text = "2026-05-03\n- 09:20 high decision: User wants less\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    said, still = foredeck("observations", "s", "2", "--text", "-").rsplit("\n", 2)[:2]
    assert f"{said}\n" == text
    assert still.startswith("These were made from it and still say it: ")
    assert "edited" in foredeck("observations", "s", "2")
    out = foredeck("observations", "s", "2", "--delete")
    assert "These were made from it and still say it: " in out
    assert foredeck("observations", "s", "2").endswith("(deleted)\n")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["s", "99"], 4, "no observation '99'"),
        (["s", "--delete"], 2, "which note?"),
        (["s", "1", "--text", "It was nice."], 2, "neither a date nor a note"),
        (["none"], 4, "no session 'none' is stored"),
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: list[str], code: int, said: str, foredeck: Foredeck
) -> None:
    assert said in foredeck("observations", *arguments, code=code)
