"""What is run ends, and so does what it has started; results survive whoever is killed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from foredeck.errors import ForedeckError
from foredeck_lab.evaluation.evaluating import MARK, ScratchRun, run_command
from foredeck_lab.evaluation.tasks import ResultsFile, RunKey, RunResult, comparison_json
from foredeck_lab.processes import marked


@pytest.fixture
def scratch(tmp_path: Path) -> ScratchRun:
    found = ScratchRun(tmp_path)
    found.work.mkdir()
    return found


def test_nothing_outlives_its_time(scratch: ScratchRun) -> None:
    environment = scratch.environment({})
    ran = run_command(
        ("sh", "-c", "echo begun; (trap '' TERM; sleep 600) & sleep 600"),
        *(scratch.work, environment, 3.0),
    )
    assert (ran.code, ran.said) == (None, "begun")
    while marked(MARK, scratch.mark):  # killed, and not gone yet
        time.sleep(0.05)


def test_the_users_folders_are_not_those_of_a_run(
    scratch: ScratchRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FOREDECK_HOME", "PI_CODING_AGENT_DIR", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, "/of-the-user")
    monkeypatch.setenv("SOME_API_KEY", "kept")
    environment = scratch.environment({})
    assert "/of-the-user" not in environment.values()
    assert environment["SOME_API_KEY"] == "kept"
    assert environment["HOME"] == str(scratch.root / "home")


def _result(round: int, side: str) -> RunResult:
    key = RunKey("task", "d", "m", ("policy=keep-all",), round, side)
    return RunResult(key, "passed", 3, 10, 20, 30, 5, 0.25, 3, 0, 1.5, "said\u2028this")


def test_results_are_gone_on_from(tmp_path: Path) -> None:
    file = ResultsFile(tmp_path / "new" / "results.jsonl")
    for side in ("pi", "foredeck"):
        file.add(_result(1, side))
    with file.path.open("a") as torn:
        torn.write('{"task": "ta')
    again = ResultsFile(file.path)
    assert again.get(_result(1, "pi").key) == _result(1, "pi")
    again.add(_result(2, "pi"))
    assert ResultsFile(file.path).get(_result(2, "pi").key) is not None


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("my notes")
    with pytest.raises(ForedeckError, match="line 1: is no result"):
        ResultsFile(file)
    assert file.read_text() == "my notes"


def test_sums_by_side() -> None:
    value = comparison_json([_result(1, "pi"), _result(2, "pi"), _result(1, "foredeck")])
    assert value["all"]["pi"]["runs"] == 2
    assert value["tasks"]["task"]["pi"]["tokens"] == 120
    assert value["all"]["foredeck"]["cost"] == 0.25
