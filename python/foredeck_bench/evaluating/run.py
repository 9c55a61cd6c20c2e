"""One evaluation with the scripted model on loopback."""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.eval_command import EvalNotReady, checkout, run_evaluation
from foredeck.cli.registry import Command
from foredeck.evaluation.evaluating import EvalPlan
from foredeck.evaluation.task_folders import LONG, SHIPPED, EvalTask, load_tasks
from foredeck_bench.evaluating.solver import solver
from foredeck_bench.scripted import ScriptedModel, write_agent_dir
from foredeck_bench.scripted.agent_dir import MODEL, PROVIDER
from foredeck_bench.scripted.pi_process import VERSIONS, checkout_pi

PATIENT = ("deadline_ms=30000", "prepare_ms=10000", "opening_ms=10000")
"""What a conversation costs must not depend on how busy this machine is."""
NOTE = (
    "A scripted model answered, which knows the solutions: these figures say what the same "
    "conversation costs with and without foredeck, and nothing of what a model can do."
)


def evaluate_scripted(
    rounds: int, file: Path, names: list[str], settings: tuple[str, ...], *, as_json: bool
) -> int:
    """Run the shipped tasks (`names`: only these) through the Pi of this checkout. The exit code
    is 1 where a task that the model solves did not pass its check."""
    install = checkout_pi(checkout(), VERSIONS[0])
    if install is None:
        raise EvalNotReady(f"Pi {VERSIONS[0]} is not installed here: run scripts/setup.")
    tasks = _chosen(names)
    with tempfile.TemporaryDirectory(prefix="foredeck-eval-model-") as folder:
        with ScriptedModel(solver(tasks)) as model:
            agent_dir = write_agent_dir(Path(folder), model.url)
            plan = EvalPlan(
                tasks,
                f"{PROVIDER}/{MODEL}",
                rounds,
                install.command,
                checkout(),
                agent_dir,
                (*PATIENT, *settings),
            )
            code = run_evaluation(plan, file, as_json=as_json, said=NOTE)
        return max(code, 1 if model.violations else 0)


def _chosen(names: list[str]) -> list[EvalTask]:
    short, long = load_tasks(SHIPPED), load_tasks(LONG)
    known = {task.name for task in [*short, *long]}
    unknown = sorted(set(names) - known)
    if unknown:
        raise EvalNotReady(f"no task {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
    return [task for task in [*short, *long] if task.name in names] if names else short


# The command


def _run(args: Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="foredeck-eval-results-") as folder:
        file = Path(args.results) if args.results else Path(folder) / "results.jsonl"
        return evaluate_scripted(args.rounds, file, args.only, tuple(args.set), as_json=args.json)


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=positive,
        default=1,
        help="how often each task is done by each side (default: %(default)s)",
    )
    parser.add_argument(
        "--only",
        metavar="TASK",
        action="append",
        default=[],
        help="only this task of the shipped ones, which may be a long one; may be repeated",
    )
    parser.add_argument(
        "--results",
        metavar="FILE",
        help="go on from these results, and keep them (default: they are thrown away)",
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a configuration key for foredeck's side; may be repeated",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Run `foredeck eval` on the shipped tasks with a scripted model on loopback, which knows\n"
        "the solutions: whether the tasks can be passed, and what the same conversation costs\n"
        "with and without foredeck. It says nothing of what a model can do. Exit code 1 where a\n"
        "provider would have refused a prompt."
    ),
    example="foredeck bench eval --only look-back --json",
    configure=_configure,
    run=_run,
)
