"""What was said and done in a session, of ours and of other agents."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from foredeck.accounting.figure import used
from foredeck.cli.main import main
from foredeck.config import Config
from foredeck.lookup.reader import Reader
from histories.written_histories import ClaudeCode, Line, said, use, write_lines
from replay.recordings import write_session

from .conftest import Served, serving

TIDY, READ = "0199aaaa-tidy", "5a1e0000-read"
BEGAN = datetime(2025, 3, 1, 10, tzinfo=UTC)


def _lines() -> list[Line]:
    """A session of Claude Code: asked, thought, edited and failed, each at a time of its own."""
    history = ClaudeCode(READ, "/repo/tide", version="2.0.0")
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 7}
    edit = {"old_string": "x = 1\ny = 2", "new_string": "x = 1\ny = 3"}
    edit_call = use("t1", "Edit", file_path="/repo/tide/a.py", **edit)
    history.user("Raise **y**, please")
    history.answer("m1", said("# Plan\n\n- edit `a.py`"), edit_call, usage=usage)
    history.result("t1", "The file was updated.")
    history.answer("m2", use("t2", "Bash", command="make"), usage=usage)
    history.result("t2", "no rule to make", failed=True)
    history.answer("m3", said("It fails."), usage=usage)
    history.user("Never mind")
    history.answer("m4", said("Fine."), usage=usage)
    for line, seconds in zip(history.lines, (0, 4, 4, 6, 9, 39, 41, 100, 102), strict=True):
        time = (BEGAN + timedelta(seconds=seconds)).isoformat()
        line["timestamp"] = time.replace("+00:00", "Z")
    return history.lines


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The inspector over a session that was read from a history."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("history")
    write_lines(folder / f"{READ}.jsonl", _lines())
    assert main(["ingest", str(folder), "--home", str(home)]) == 0
    Reader(Config(home=home)).warm()
    yield from serving(home)


def test_a_session_of_another_agent_is_a_tree_of_turns_calls_and_tools(read: Served) -> None:
    value: Any = read.value(f"/sessions/{READ}.json")
    assert value["ingested"] is True
    assert value["title"] == "Raise **y**, please"
    first, second = value["turns"]
    assert (first["asked"], second["asked"]) == ("Raise **y**, please", "Never mind")
    assert [len(first["steps"]), len(second["steps"])] == [3, 1]
    assert (first["tools"], first["failed"]) == (2, 1)
    edit, make = (step["tools"][0] for step in first["steps"][:2])
    assert edit["diff"][1:] == [" x = 1", "-y = 2", "+y = 3"]
    assert (make["code"], make["failed"], make["result"]) == ("make", True, "no rule to make")


def test_times_and_tokens_are_those_that_were_recorded(read: Served) -> None:
    value: Any = read.value(f"/sessions/{READ}.json?view=turns")
    began = int(BEGAN.timestamp() * 1000)
    assert (value["first_ms"], value["last_ms"]) == (began, began + 102_000)
    first, second = value["turns"]
    assert (first["duration_ms"], second["duration_ms"]) == (41_000, 2_000)
    assert [step["took_ms"] for step in first["steps"]] == [6_000, 33_000, 2_000]
    assert [step["model_ms"] for step in first["steps"]] == [4_000, 3_000, 2_000]
    assert [step["tools"][0]["took_ms"] for step in first["steps"][:2]] == [2_000, 30_000]
    assert first["usage"] == {"input": 30, "read": 270, "written": 0, "output": 21, "money": None}
    assert (value["answers"], value["model_ms"], value["tools_ms"]) == (4, 11_000, 32_000)
    listed: Any = read.value("/search.json?type=toolcall")["objects"]
    assert sorted(each["time_ms"] for each in listed) == [began + 6_000, began + 39_000]


def test_an_answer_costs_what_its_agent_wrote_down_else_what_the_list_says() -> None:
    counts = {"input": 1_000_000, "cacheRead": 1_000_000, "cacheWrite": 0, "output": 100_000}
    answer = {"provider": "anthropic", "model": "claude-opus-4-5-20251101", "usage": counts}
    assert used(answer)["money"] == pytest.approx(5 + 0.5 + 2.5)
    free = {**answer, "usage": {**counts, "cost": {"total": 0}}}
    assert [used(each)["money"] for each in (free, {**answer, "model": "m"})] == [None, None]


def test_model_and_tools_differ_in_the_waterfall(read: Served) -> None:
    value: Any = read.value(f"/sessions/{READ}.json?view=turns")
    spans = [span for step in value["turns"][0]["steps"] for span in step["spans"]]
    assert [(span["kind"], span["took_ms"]) for span in spans] == [
        ("model", 4_000), ("tool", 2_000), ("model", 3_000), ("tool", 30_000), ("model", 2_000),
    ]  # fmt: skip
    html = read.page(f"/sessions/{READ}")
    assert "<title>Bash: 30s</title>" in html
    assert "<li>edit <code>a.py</code></li>" in html
    assert '<span class="add">+y = 3\n</span>' in html


def test_pis_own_measures_tell_model_and_tools_apart(tmp_path: Path) -> None:
    began = int(BEGAN.timestamp() * 1000)
    call = {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": "make"}}
    used = {"provider": "p", "model": "m", "usage": {"input": 10, "output": 7}}
    result = {"toolCallId": "t1", "toolName": "bash", "content": [], "isError": False}
    messages = [
        {"role": "user", "content": "Make it", "timestamp": began},
        {"role": "assistant", "content": [call], **used, "timestamp": began, "durationMs": 4_000},
        {"role": "toolResult", **result, "timestamp": began + 39_000, "durationMs": 30_000},
        {"role": "assistant", "content": [], **used, "timestamp": began + 40_000},
    ]
    write_session(tmp_path / "pi.jsonl", *messages, id=READ)
    assert main(["ingest", str(tmp_path / "pi.jsonl"), "--home", str(tmp_path / "home")]) == 0
    for served in serving(tmp_path / "home"):
        value: Any = served.value(f"/sessions/{READ}.json?view=turns")
    first, second = value["turns"][0]["steps"]
    spans = [(span["kind"], span["took_ms"]) for span in first["spans"]]
    assert spans == [("model", 4_000), ("tool", 30_000)]
    assert (second["model_ms"], second["spans"]) == (None, [])


def test_a_history_has_no_call_to_show(read: Served) -> None:
    answer = read.client.get(f"/sessions/{READ}/calls/3")
    assert (answer.status_code, "has made no call yet." in answer.text) == (404, True)


def test_a_history_has_a_table_of_calls(read: Served) -> None:
    value: Any = read.value(f"/sessions/{READ}.json?view=calls")
    assert [row["tools"] for row in value["listed"]] == [["Edit"], ["Bash"], [], []]
    assert [row["call"] for row in value["listed"] if row["failed"]] == [2]
    assert "read from a history of" in read.page(f"/sessions/{READ}")


def test_a_session_of_ours_leads_from_its_answers_to_their_prompts(served: Served) -> None:
    value: Any = served.value(f"/sessions/{TIDY}.json?view=turns")
    steps = [step for turn in value["turns"] for step in turn["steps"]]
    assert [tool["tool"] for step in steps for tool in step["tools"]] == ["read"] * 3 + ["write"]
    assert any(step["call"] for step in steps)
    wrote = next(tool for step in steps for tool in step["tools"] if tool["tool"] == "write")
    assert wrote["code"] == "def spring_tide():\n    return 2\n"
    assert f'href="/sessions/{TIDY}/calls/' in served.page(f"/sessions/{TIDY}?view=turns")
