"""Replays in which observations take the place of older chat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foredeck_bench.judging.comparison import Way, compare
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay_command import replay
from replay.recordings import Recording, text


def long_work(turns: int = 80) -> Recording:
    """Turns of long words and short results, which no folding makes shorter."""
    recording = Recording()
    for number in range(turns):
        recording.user(f"Do part {number}, and say why{number}.")
        recording.assistant(text(f"I think about part_{number}_of_it. " * 60))
        recording.user("Go on.")
        recording.run(f"t{number}", "bash", f"made {number}", command=f"make part_{number}")
        recording.assistant(text(f"part_{number}_of_it is made. " * 60))
    return recording


def replayed(path: Path, prompts: Path | None = None, **options: Any) -> dict[str, Any]:
    made = replay([path], ReplayOptions(prompts=prompts, **options))
    assert made["total"]["errors"] == 0, made["sessions"]
    assert made["total"]["invalid_prompts"] == 0
    return made


def judged(path: Path, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = compare([path], [Way(ReplayOptions(**options))]).table[-1]
    return found


def prompts_in(folder: Path) -> list[str]:
    return [file.read_text() for file in sorted(folder.rglob("*.json"))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return long_work().write(tmp_path / "long.jsonl")


def test_observations_cost_less_with_what_asking_costs(path: Path, tmp_path: Path) -> None:
    without, observed = judged(path), judged(path, observes=True)
    replayed(path, tmp_path / "p", observes=True)
    assert without["questions"] == 0
    assert observed["questions"] > 0
    assert 0 < observed["asked"] <= 0.08 * observed["cost"]
    assert observed["cost"] < without["cost"]
    shown = json.dumps(json.loads(prompts_in(tmp_path / "p")[-1])["messages"])
    assert "from notes (@" in shown
    assert "Do part 0, and say why0." in shown


@pytest.mark.long
def test_the_same_session_gives_the_same_prompts(path: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two", tmp_path / "restarted"]
    for folder, every in zip(folders, (None, None, 7), strict=True):
        replayed(path, folder, observes=True, restart_every=every)
    one, two, restarted = map(prompts_in, folders)
    assert one == two
    assert one == restarted


def test_a_short_session_asks_nobody(tmp_path: Path) -> None:
    assert judged(long_work(3).write(tmp_path / "short.jsonl"), observes=True)["questions"] == 0
