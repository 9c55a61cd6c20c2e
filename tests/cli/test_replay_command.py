"""`foredeck replay`: the table, the JSON, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foredeck.cli.main import main
from foredeck.errors import NotFound
from foredeck_agents.histories.records import TranscriptError

HEADER = '{"type": "session", "id": "s1", "cwd": "/repo"}'


def line(role: str, text: str, time_ms: int) -> str:
    content = [{"type": "text", "text": text}]
    return json.dumps(
        {"type": "message", "message": {"role": role, "content": content, "timestamp": time_ms}}
    )


@pytest.fixture
def session(tmp_path: Path) -> Path:
    path = tmp_path / "recorded" / "first.jsonl"
    path.parent.mkdir()
    lines = [HEADER, line("user", "hello", 1), line("assistant", "hi", 2)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_json_is_as_documented(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(session.parent), "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
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
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (session.parent / "second.jsonl").write_text(session.read_text())
    assert main(["replay", str(session.parent)]) == 0
    text = capsys.readouterr().out
    rows = [row.split()[0] for row in text.splitlines() if row]
    assert rows[3:7] == ["session", "first", "second", "total"]
    assert text.count("No price is known of a model without a name: ") == 1
    assert "No model ran" in " ".join(text.split())
    assert "with plain Pi, over 2 calls.\n" in text
    assert "\n2 sessions, 2 calls: every prompt valid, no error.\n\nsession " in text
    assert max(map(len, text.split("\n"))) <= 100


def test_a_facility_that_does_not_exist_is_refused(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(session), "--tools", "context,graph"]) == 2
    assert "there is no 'graph'; there are context, search, tasks" in capsys.readouterr().err


def test_what_the_definitions_cost_is_said(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(session), "--tools", "none"]) == 0
    said = "Definitions of foredeck's tools, in every prompt: 0 tokens.\n"
    assert said in capsys.readouterr().out


def test_why_a_kept_store_shows_other_figures_is_said(
    session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warm = ["--as", "claude-opus-5-5", "--warm", "--keep", str(tmp_path / "kept")]
    assert main(["replay", str(session), *warm]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "it counts 3.5 characters as a token, and plain Pi's cache as warm" in said


def test_a_session_with_an_error_is_exit_code_1(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (session.parent / "second.jsonl").write_text("{}\n")
    assert main(["replay", str(session.parent)]) == 1
    text = capsys.readouterr().out
    assert "second.jsonl: stopped at call 1: " in text
    assert "\n2 sessions, 1 call: 0 invalid prompts, 1 error.\n\n" in text


def test_a_line_that_was_cut_off_is_told(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with session.open("a") as file:
        file.write('{"type": "mess')
    assert main(["replay", str(session)]) == 0
    assert "first.jsonl: left out 1 line" in capsys.readouterr().out


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
    session: Path, arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(session), *arguments]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("command", [["replay"], ["cost"], ["show"], ["ingest"]])
def test_a_missing_file_is_said_in_the_same_way(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, str(tmp_path / "nowhere.jsonl")]) == NotFound.exit_code
    assert "nowhere.jsonl does not exist" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["replay"], ["cost"], ["show"], ["ingest"]])
def test_a_file_that_is_no_text_is_said_in_the_same_way(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "picture.jsonl").write_bytes(bytes(range(256)) * 20)
    code = main([*command, str(tmp_path / "picture.jsonl")])
    assert code == TranscriptError.exit_code
    told = "".join(capsys.readouterr())
    assert "holds no session of Pi, Claude Code or Codex" in told
    assert "TranscriptError" not in told


def test_costs_are_in_dollars_and_blank_where_no_price_is_known(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {"role": "assistant", "provider": "anthropic", "model": "claude-sonnet-4-5"}
    content = [{"type": "text", "text": "hi"}]
    lines = [{"type": "session", "id": "s2", "cwd": "/repo"}]
    for number in range(2):
        user = {"role": "user", "content": "x" * 40_000, "timestamp": number * 10 + 1}
        answer = said | {"content": content, "timestamp": number * 10 + 2}
        lines += [{"type": "message", "message": message} for message in (user, answer)]
    (session.parent / "priced.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    assert main(["replay", str(session.parent)]) == 0
    table = capsys.readouterr().out.partition("session ")[2]
    rows = {row.split()[0]: row for row in table.splitlines()[1:4]}
    assert [rows[name].count("$") for name in ("first", "priced", "total")] == [0, 2, 2]
    assert "tokens" not in table.partition("\n\n")[0]
    assert main(["cost", str(session.parent / "priced.jsonl"), "--calls"]) == 0
    costs = capsys.readouterr().out.partition("call  time")[2].splitlines()[1:3]
    assert [row.count("$") for row in costs] == [2, 2]


def test_a_path_without_sessions_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(tmp_path)]) == 2
    assert "holds no recorded sessions" in capsys.readouterr().err


def test_the_state_folder_is_never_touched(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "state"
    monkeypatch.setenv("FOREDECK_HOME", str(home))
    assert main(["replay", str(session), "--json"]) == 0
    assert not home.exists()
