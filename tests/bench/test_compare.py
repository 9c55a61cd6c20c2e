"""The comparison of ways to assemble prompts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foredeck_bench import compare
from foredeck_bench.judging.comparison import RIVALS, Way, rivals
from foredeck_lab.replay.options import ReplayOptions
from replay.recordings import Recording, text


def test_the_rivals_differ_from_what_is_asked_and_one_has_no_digests() -> None:
    options = ReplayOptions(settings=("adaptive.patience=9",))
    others = rivals(options)
    assert len(others) == len(RIVALS)
    assert others[-1].label == f"{Way(options).label}, no digests"
    assert others[-1].options.settings == ("adaptive.patience=9", "digests.max_tokens=0")


def session(folder: Path) -> Path:
    recording = Recording()
    for number in range(3):
        recording.user(f"Question {number}: " + "word " * 200)
        recording.assistant(text("Yes."))
    return recording.write(folder / "one.jsonl")


def test_the_comparison_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.main([str(session(tmp_path))]) == 0
    printed = capsys.readouterr().out
    assert "1 recorded session, 3 calls" in printed
    assert "anchored, adaptive, no digests" in printed


def test_a_file_that_is_no_session_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "second.jsonl").write_text("{}\n")
    session(tmp_path)
    assert compare.main([str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert "second.jsonl: TranscriptError" in printed.err
    assert "2 recorded sessions, 3 calls" in printed.out


def test_tools_that_are_declared_are_paid_for_and_the_others_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, costs = session(tmp_path), {}
    for tools in ("none", "context,search", "search,context", "context,search,tasks"):
        assert compare.main([str(path), "--tools", tools, "--observations", "--json"]) == 0
        rows = {row["row"]: row["cost"] for row in json.loads(capsys.readouterr().out)}
        costs[tools] = rows["anchored, adaptive"] - rows["plain Pi"]
    assert costs["none"] == 0
    assert costs["none"] < costs["context,search"] < costs["context,search,tasks"]
    assert costs["search,context"] == costs["context,search"]
