"""`foredeck replay`: the table, the JSON, and the exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import Foredeck
from foredeck.errors import NotFound
from foredeck_agents.histories.records import TranscriptError
from replay.recordings import text, write_session

QUESTION = {"role": "user", "content": "hello"}
ANSWER = {"role": "assistant", "content": [text("hi")]}


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return write_session(tmp_path / "recorded" / "first.jsonl", QUESTION, ANSWER, id="s1")


def test_json_is_as_documented(session: Path, foredeck: Foredeck) -> None:
    value = foredeck.json("replay", session.parent)
    assert set(value) == {"sessions", "total", "costs"}
    assert [cost["calls"] for cost in value["costs"]] == [1]
    told = value["sessions"][0]
    assert told["file"] == "first.jsonl"
    assert {name: told[name] for name in ("calls", "tool_calls", "invalid_prompts", "error")} == {
        "calls": 1,
        "tool_calls": 0,
        "invalid_prompts": 0,
        "error": None,
    }
    assert told["chars_plain"] == told["chars_foredeck"] == 5
    assert value["total"]["calls"] == 1


def test_the_table_has_a_row_per_session_and_says_that_no_model_ran(
    session: Path, foredeck: Foredeck
) -> None:
    (session.parent / "second.jsonl").write_text(session.read_text())
    text = foredeck("replay", session.parent)
    rows = [row.split()[0] for row in text.splitlines() if row]
    assert rows[3:7] == ["session", "first", "second", "total"]
    assert text.count("No price is known of a model without a name: ") == 1
    assert "No model ran" in " ".join(text.split())
    assert "with plain Pi, over 2 calls.\n" in text
    assert "\n2 sessions, 2 calls: every prompt valid, no error.\n\nsession " in text
    assert max(map(len, text.split("\n"))) <= 100


def test_a_facility_that_does_not_exist_is_refused(session: Path, foredeck: Foredeck) -> None:
    assert "there is no 'graph'; there are context, search, tasks" in foredeck(
        "replay", session, "--tools", "context,graph", code=2
    )


def test_what_the_definitions_cost_is_said(session: Path, foredeck: Foredeck) -> None:
    said = "Definitions of foredeck's tools, in every prompt: 0 tokens.\n"
    assert said in foredeck("replay", session, "--tools", "none")


def test_why_a_kept_store_shows_other_figures_is_said(
    session: Path, tmp_path: Path, foredeck: Foredeck
) -> None:
    warm = ["--as", "claude-opus-5-5", "--warm", "--keep", str(tmp_path / "kept")]
    said = " ".join(foredeck("replay", session, *warm).split())
    assert "it counts 3.5 characters as a token, and plain Pi's cache as warm" in said


def test_a_session_with_an_error_is_exit_code_1(session: Path, foredeck: Foredeck) -> None:
    (session.parent / "second.jsonl").write_text("{}\n")
    foredeck("replay", session.parent, code=1)
    text = foredeck.out
    assert "second.jsonl: stopped at call 1: " in text
    assert "\n2 sessions, 1 call: 0 invalid prompts, 1 error.\n\n" in text


def test_a_line_that_was_cut_off_is_told(session: Path, foredeck: Foredeck) -> None:
    with session.open("a") as file:
        file.write('{"type": "mess')
    assert "first.jsonl: left out 1 line" in foredeck("replay", session)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--window", "0"], "must be a whole number of at least 1"),
        (["--layout", "poool"], "poool"),
        (["--policy", "best"], "best"),
        (["--set", "layuot=pools"], "did you mean 'layout'?"),
    ],
)
def test_a_wrong_usage_is_exit_code_2(
    session: Path, arguments: list[str], told: str, foredeck: Foredeck
) -> None:
    assert told in foredeck("replay", session, *arguments, code=2)


@pytest.mark.parametrize("command", [["replay"], ["cost"], ["show"], ["ingest"]])
def test_a_missing_file_is_said_in_the_same_way(
    command: list[str], tmp_path: Path, foredeck: Foredeck
) -> None:
    assert "nowhere.jsonl does not exist" in foredeck(
        *command, tmp_path / "nowhere.jsonl", code=NotFound.exit_code
    )


@pytest.mark.parametrize("command", [["replay"], ["cost"], ["show"], ["ingest"]])
def test_a_file_that_is_no_text_is_said_in_the_same_way(
    command: list[str], tmp_path: Path, foredeck: Foredeck
) -> None:
    (tmp_path / "picture.jsonl").write_bytes(bytes(range(256)) * 20)
    foredeck(*command, tmp_path / "picture.jsonl", code=TranscriptError.exit_code)
    told = foredeck.out + foredeck.err
    assert "holds no session of Pi, Claude Code or Codex" in told
    assert "TranscriptError" not in told


def test_costs_are_in_dollars_and_blank_where_no_price_is_known(
    session: Path, foredeck: Foredeck
) -> None:
    question = {"role": "user", "content": "x" * 40_000}
    reply = {**ANSWER, "provider": "anthropic", "model": "claude-sonnet-4-5"}
    write_session(session.parent / "priced.jsonl", *[question, reply] * 2, id="s2")
    table = foredeck("replay", session.parent).partition("session ")[2]
    rows = {row.split()[0]: row for row in table.splitlines()[1:4]}
    assert [rows[name].count("$") for name in ("first", "priced", "total")] == [0, 2, 2]
    assert "tokens" not in table.partition("\n\n")[0]
    costs = (
        foredeck("cost", session.parent / "priced.jsonl", "--calls")
        .partition("call  time")[2]
        .splitlines()[1:3]
    )
    assert [row.count("$") for row in costs] == [2, 2]


def test_a_path_without_sessions_is_exit_code_2(tmp_path: Path, foredeck: Foredeck) -> None:
    assert "holds no recorded sessions" in foredeck("replay", tmp_path, code=2)


def test_the_state_folder_is_never_touched(
    session: Path, tmp_path: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path / "state"))
    foredeck("replay", session, "--json")
    assert not (tmp_path / "state").exists()
