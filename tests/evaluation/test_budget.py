"""An evaluation that ends at an amount of money."""

from __future__ import annotations

from pathlib import Path

import pytest

from foredeck.cli.main import main
from foredeck_lab.eval_command import run_evaluation
from foredeck_lab.evaluation import evaluating
from foredeck_lab.evaluation.evaluating import EvalPlan, evaluate
from foredeck_lab.evaluation.tasks import (
    SHIPPED,
    EvalTask,
    ResultsFile,
    RunKey,
    RunResult,
    load_tasks,
)


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> EvalPlan:
    """Three tasks, of which each run costs 40 cents; Pi passes and foredeck fails."""

    def run(_plan: EvalPlan, _task: EvalTask, key: RunKey) -> RunResult:
        outcome = "passed" if key.side == "pi" else "failed"
        return RunResult(key, outcome, 9, 1, 2, 3, 4, 0.4, 9, 0, 1.0, "")

    monkeypatch.setattr(evaluating, "_run", run)
    return EvalPlan(
        load_tasks(SHIPPED)[:3], "m", 1, ("pi",), Path(), Path(), keeps=False, budget=1.0
    )


def test_no_run_begins_once_the_budget_is_spent_and_the_next_goes_on(
    plan: EvalPlan, tmp_path: Path
) -> None:
    results = ResultsFile(tmp_path / "results.jsonl")
    counts = [len(list(evaluate(plan, results))) for _ in range(3)]
    assert counts == [3, 6, 6]


def test_what_only_one_side_has_done_is_kept_and_not_compared(
    plan: EvalPlan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.jsonl"
    assert run_evaluation(plan, file, as_json=False) == 0
    out, err = capsys.readouterr()
    assert "stopped at the budget of $1.00, with 3 of 6 runs in" in err
    rows = [line.split() for line in out.splitlines() if " $" in line]
    assert [row[-3:-1] for row in rows[-2:]] == [["$0.4000", "$0.4000"], ["$0.4000", "-"]]
    assert len(file.read_text().splitlines()) == 3


@pytest.mark.parametrize("amount", ["0", "-1", "much", "inf", "nan"])
def test_an_amount_that_is_none_is_refused(amount: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "--model", "m", f"--budget={amount}"]) == 2
    assert "amount in dollars above 0" in capsys.readouterr().err
