"""The runs of an evaluation: each task by plain Pi and by Pi with foredeck, round after round."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from foredeck.config.environment import environment_name
from foredeck.errors import ForedeckError
from foredeck.evaluation.figures import OwnShare, RunFigures, own_share, spent_in
from foredeck.evaluation.results import SIDES, ResultsFile, RunKey, RunResult
from foredeck.evaluation.running import Ran, run_command
from foredeck.evaluation.scratch import ScratchRun
from foredeck.evaluation.task_folders import EvalTask

CHECK_S = 120.0
"""So long a check, or what sets a task up, may take."""


class RunImpossible(ForedeckError):
    """A run says nothing of foredeck or the model: no model answered, or foredeck was not there."""


@dataclass(frozen=True, slots=True)
class EvalPlan:
    """What is to be evaluated, and with what."""

    tasks: Sequence[EvalTask]
    model: str
    """As Pi takes it: `provider/id`, a pattern, with `:LEVEL` for how much it thinks."""
    rounds: int
    pi: Sequence[str]
    """The command that starts Pi."""
    extension: Path
    """foredeck's extension, as `pi -e` takes it."""
    agent_dir: Path
    """Pi's folder with the models and the keys that are used."""
    settings: tuple[str, ...] = ()
    """`KEY=VALUE` of foredeck's configuration."""
    keeps: bool = False
    """Whether the folders of runs stay."""
    budget: float | None = None
    """In dollars: no run begins once the runs made before it have cost this much."""

    def runs(self) -> Iterator[tuple[EvalTask, RunKey]]:
        """All runs in their order. Who begins changes from task to task and round to round: what
        the provider's cache holds of one must not always help the same other."""
        for round in range(1, self.rounds + 1):
            for at, task in enumerate(self.tasks):
                digest = task.digest
                for side in SIDES if (round + at) % 2 else reversed(SIDES):
                    key = (task.name, digest, self.model, self.settings, round, side)
                    yield task, RunKey(*key)


Told = Callable[[RunResult, bool], None]
"""Is told of each result, and whether it was there before."""


def evaluate(plan: EvalPlan, results: ResultsFile, told: Told) -> list[RunResult]:
    """Make the runs whose results are not there yet; all results of the plan, in their order,
    without those for which the budget was too small.

    Raises `RunImpossible`, `ResultsUnusable`. What was done until then is kept.
    """
    found = []
    spent = 0.0
    for task, key in plan.runs():
        known = results.get(key)
        if known is None and plan.budget is not None and spent >= plan.budget:
            continue
        result = known or _run(plan, task, key)
        if known is None:
            results.add(result)
            spent += result.cost
        told(result, known is not None)
        found.append(result)
    return found


def _run(plan: EvalPlan, task: EvalTask, key: RunKey) -> RunResult:
    # Resolved: the agent and the check must mean the same folder by its name.
    root = Path(tempfile.mkdtemp(prefix=f"foredeck-eval-{key.side}-")).resolve()
    try:
        return _run_in(ScratchRun(root / "run"), plan, task, key)
    finally:
        if not plan.keeps:
            shutil.rmtree(root, ignore_errors=True)


def _run_in(scratch: ScratchRun, plan: EvalPlan, task: EvalTask, key: RunKey) -> RunResult:
    scratch.prepare(task, plan.agent_dir)
    if task.setup:
        made = _shell(task.setup, scratch)
        if made.code != 0:
            raise RunImpossible(f"the task {task.name} cannot be set up: {made.said}")
    ran = _ask(scratch, plan, task, key.side)
    spent, share = spent_in(scratch.agent_dir), own_share(scratch.foredeck_home)
    _check_it_counts(ran, spent, share, key)
    scratch.lay_check(task)
    checked = _shell(task.check, scratch)
    passed = "timeout" if ran.code is None else "failed"
    return RunResult(
        key,
        "passed" if checked.code == 0 else passed,
        spent.calls,
        spent.fresh,
        spent.read,
        spent.written,
        spent.output,
        round(spent.cost + share.asked_cost, 6),
        share.managed,
        share.asked,
        round(ran.seconds, 1),
        checked.said,
    )


def _ask(scratch: ScratchRun, plan: EvalPlan, task: EvalTask, side: str) -> Ran:
    """Let Pi work."""
    extra, loaded = {}, []
    if side == "foredeck":
        loaded = ["-e", str(plan.extension)]
        pairs = (setting.partition("=") for setting in plan.settings)
        extra = {environment_name(name): value for name, _, value in pairs}
        # This one has foredeck; the scratch HOME has none.
        extra["FOREDECK_PYTHON"] = sys.executable
    command = [*plan.pi, *loaded, "--model", plan.model, "-p", "--", *task.prompts]
    return run_command(command, scratch.work, scratch.environment(extra), task.timeout_s)


def _check_it_counts(ran: Ran, spent: RunFigures, share: OwnShare, key: RunKey) -> None:
    """Raises `RunImpossible` where what the agent has done says nothing of the task."""
    if spent.error and ran.code is not None:
        raise RunImpossible(f"{key.model} did not answer ({key.task}): {spent.error}")
    if not spent.calls:
        why = ran.said or f"Pi ended with {ran.code} and said nothing"
        raise RunImpossible(f"Pi could not ask {key.model} ({key.task}): {why}")
    if key.side == "foredeck" and not share.managed:
        raise RunImpossible(
            f"foredeck made none of the {spent.calls} prompts of {key.task}: {ran.said or 'Pi'} "
            "(`foredeck doctor` checks what it needs)"
        )


def _shell(line: str, scratch: ScratchRun) -> Ran:
    return run_command(("sh", "-c", line), scratch.work, scratch.environment({}), CHECK_S)
