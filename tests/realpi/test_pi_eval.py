"""`foredeck eval` through the real Pi: both sides, what stops it, and how it goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foredeck.cli.main import main
from foredeck_bench.scripted.pi_process import VERSIONS, checkout_pi


def test_both_sides_do_a_task_and_are_not_asked_again(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if checkout_pi(checkout, VERSIONS[0]) is None:
        pytest.skip("Pi is not installed: run scripts/setup")
    file = tmp_path / "results.jsonl"
    command = ["bench", "eval", "--only", "failing-test", "--json", "--results", str(file)]
    assert main(command) == 0
    out, err = capsys.readouterr()
    value = json.loads(out)
    sides = value["tasks"]["failing-test"]
    assert [sides[side]["passed"] for side in ("pi", "foredeck")] == [1, 1]
    assert sides["pi"]["calls"] == sides["foredeck"]["calls"] == sides["foredeck"]["managed"]
    assert sides["pi"]["tokens"] > 0
    assert value["note"].startswith("A scripted model answered")
    assert "[2/2]" in err
    assert main(command) == 0
    again = capsys.readouterr()
    assert json.loads(again.out) == value
    assert again.err == ""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks" / "short"
    (folder / "files").mkdir(parents=True)
    text = 'prompts = ["Begin."]\ncheck = "false"\n'
    (folder / "task.toml").write_text(text)
    return folder


def _evaluate(checkout: Path, tmp_path: Path, task: Path, model: str) -> int:
    install = checkout_pi(checkout, VERSIONS[0])
    if install is None:
        pytest.skip("Pi is not installed: run scripts/setup")
    pi = tmp_path / "pi"
    pi.write_text(f'#!/bin/sh\nexec {" ".join(install.command)} "$@"\n')
    pi.chmod(0o755)
    flags = ["--pi", str(pi), "--home", str(tmp_path / "home")]
    return main(["eval", str(task), "--model", model, *flags])


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
