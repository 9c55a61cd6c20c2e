"""`foredeck eval` through the real Pi: both sides, what stops it, and how it goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foredeck.cli.main import main
from foredeck_bench.scripted.pi_process import (
    MODEL,
    PROVIDER,
    VERSIONS,
    checkout_pi,
    write_agent_dir,
)
from foredeck_bench.twin.script import Script, call
from foredeck_bench.twin.server import ScriptedModel
from foredeck_lab.evaluation.tasks import SHIPPED

SOLUTION = Path(__file__).parents[1] / "evaluation/solutions/failing-test/1/pricing.py"
SOLVED: Script = [
    call("read", path="pricing.py"),
    call("write", path="pricing.py", content=SOLUTION.read_text()),
    call("bash", command="python3 -m unittest"),
    "That is done.",
]


def test_both_sides_do_a_task_and_are_not_asked_again(
    checkout: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "results.jsonl"
    patience = ["--set", "deadline_ms=30000"]
    more = [*patience, "--json", "--results", str(file)]
    with ScriptedModel([*SOLVED, *SOLVED]) as model:
        agent = write_agent_dir(tmp_path / "agent", model.url)
        monkeypatch.setenv("PI_CODING_AGENT_DIR", str(agent))
        asked = (SHIPPED / "failing-test", f"{PROVIDER}/{MODEL}", *more)
        assert _evaluate(checkout, tmp_path, *asked) == 0
        out, err = capsys.readouterr()
        assert model.steps_left == 0
        assert _evaluate(checkout, tmp_path, *asked) == 0
    value = json.loads(out)
    sides = value["tasks"]["failing-test"]
    assert [sides[side]["passed"] for side in ("pi", "foredeck")] == [1, 1]
    assert sides["pi"]["calls"] == sides["foredeck"]["calls"] == sides["foredeck"]["managed"] == 4
    assert sides["pi"]["tokens"] > 0
    assert "[2/2]" in err
    again = capsys.readouterr()
    assert (json.loads(again.out), again.err) == (value, "")


@pytest.fixture
def task(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks" / "short"
    (folder / "files").mkdir(parents=True)
    text = 'prompts = ["Begin."]\ncheck = "false"\n'
    (folder / "task.toml").write_text(text)
    return folder


def _evaluate(checkout: Path, tmp_path: Path, task: Path, model: str, *more: str) -> int:
    install = checkout_pi(checkout, VERSIONS[0])
    if install is None:
        pytest.skip("Pi is not installed: run scripts/setup")
    pi = tmp_path / "pi"
    pi.write_text(f'#!/bin/sh\nexec {" ".join(install.command)} "$@"\n')
    pi.chmod(0o755)
    flags = ["--pi", str(pi), "--home", str(tmp_path / "home")]
    return main(["eval", str(task), "--model", model, *flags, *more])


def test_without_a_key_it_says_so_and_stops(
    checkout: Path,
    tmp_path: Path,
    task: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "agent"))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    assert _evaluate(checkout, tmp_path, task, "anthropic/claude-sonnet-4-5") == 1
    said = capsys.readouterr().err
    assert "No API key found for anthropic" in said
    assert "0 of 2 runs are in" in said
