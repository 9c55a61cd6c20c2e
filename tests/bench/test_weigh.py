"""Weighing variants against each other, set by set and repository by repository."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from foredeck_bench import playback
from foredeck_bench.judging.comparison import repository_of
from foredeck_bench.judging.yardsticks import PLAIN, SIMPLE
from foredeck_bench.weigh import main
from replay.recordings import everything

_CELL = re.compile(r"  +")


def test_sets_are_told_apart_and_a_variant_is_compared_by_repository(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("pi", "other"):
        (tmp_path / name).mkdir()
        everything().write(tmp_path / name / "owner__one__s1.jsonl")
    everything().write(tmp_path / "pi" / "owner__two__s2.jsonl")
    variants = ["--variant", "today:", "--variant", "kept:policy=keep-all"]
    assert main([*variants, str(tmp_path / "pi"), str(tmp_path / "other")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(("pi:", "other:"))] == [
        "pi: 2 sessions",
        "other: 1 session",
    ]
    assert [line.split()[0] for line in lines if line.startswith(("today", "kept "))] == [
        "today",
        "kept",
        "today",
        "kept",
    ]
    assert sum(line.startswith("owner/one") for line in lines) == 2
    assert sum(line.startswith("owner/two") for line in lines) == 1


def test_the_simple_rules_and_hindsight_stand_beside_the_variants(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    everything().write(tmp_path / "owner__one__s1.jsonl")
    assert main(["--sessions", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    rows = {cells[0]: cells[1:] for line in shown.splitlines() if (cells := _CELL.split(line))}
    cost = {name: float(rows[name][0]) for name in (*SIMPLE, "default", "with hindsight")}
    assert cost[PLAIN] == 100
    assert cost["with hindsight"] < min(cost[name] for name in (*SIMPLE, "default"))
    assert rows[PLAIN][1] == "0.0"
    assert "system prompt and tools, which nothing changes: 0.0 of the cost" in shown
    assert sum(line.startswith("owner__one__s1") for line in shown.splitlines()) == 1


def test_a_file_that_is_no_session_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "second.jsonl").write_text("{}\n")
    everything().write(tmp_path / "first.jsonl")
    variants = ["--variant", "notes:", "--variant", "none:observations=off"]
    assert main(["--observations", *variants, str(tmp_path)]) == 1
    assert "second.jsonl: TranscriptError" in capsys.readouterr().err


def test_a_setting_without_a_value_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--variant", "x:policy", "nowhere"])
    assert "NAME:KEY=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize("run", [main, playback.main])
def test_help_shows_the_usage_on_a_line_of_its_own(
    run: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(["--help"])
    assert re.search(
        r"^ {4}python -m foredeck_bench\.\w+ .*PATH\.\.\.$", capsys.readouterr().out, re.M
    )


def test_a_file_without_a_repository_in_its_name_goes_by_its_folder() -> None:
    assert repository_of(Path("/s/--home-me-app--/2026_1.jsonl")) == "--home-me-app--"
    assert repository_of(Path("/s/me__app__2026.jsonl")) == "me/app"
