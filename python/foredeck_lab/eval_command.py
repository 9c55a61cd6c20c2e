"""`foredeck eval`: plain Pi against Pi with foredeck, on tasks that check themselves."""

from __future__ import annotations

import shutil
import signal
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import foredeck
from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import print_json, table
from foredeck.errors import CommandRefused, ForedeckError
from foredeck.model.figures import counted, short_count
from foredeck_lab.evaluation.evaluating import EvalPlan, evaluate, users_agent_dir
from foredeck_lab.evaluation.tasks import (
    LONG,
    SHIPPED,
    ResultsFile,
    RunResult,
    SideSum,
    compared,
    comparison_json,
    load_tasks,
    paired,
    summed,
)

RESULTS = "evaluations.jsonl"
"""In the state folder."""


def run(args: Namespace) -> int:
    """`foredeck eval`."""
    home = resolve_config(args).config.home
    plan = EvalPlan(
        load_tasks(Path(args.tasks) if args.tasks else LONG if args.long else SHIPPED),
        args.model,
        args.rounds,
        (_program(args.pi),),
        _extension(args.extension),
        users_agent_dir(),
        tuple(args.set),
        args.keep,
        args.budget,
    )
    file = Path(args.results) if args.results else home / RESULTS
    return run_evaluation(plan, file, as_json=args.json)


def run_evaluation(plan: EvalPlan, file: Path, *, as_json: bool) -> int:
    """Makes the missing runs of a plan, and prints the comparison."""
    runs, results = len(list(plan.runs())), ResultsFile(file)
    done: list[RunResult] = []
    try:
        with _ends_as_interrupted():
            for result, was_there in evaluate(plan, results):
                done.append(result)
                if not was_there:
                    print(_line(result, f"{len(done)}/{runs}"), file=sys.stderr, flush=True)
    except (KeyboardInterrupt, ForedeckError):
        print(
            f"foredeck: {len(done)} of {counted(runs, 'run')} are in {file}; the same command "
            "goes on from there.",
            file=sys.stderr,
        )
        raise
    if len(done) < runs:
        print(
            f"foredeck: stopped at the budget of ${plan.budget:.2f}, with {len(done)} of "
            f"{counted(runs, 'run')} in {file}; run the same command to continue.",
            file=sys.stderr,
        )
    found = paired(done)
    if as_json:
        head = {"model": plan.model, "rounds": plan.rounds, "results": str(file)}
        print_json({**head, **comparison_json(found)})
    else:
        print(_text(found))
        print("\n" + "\n".join(_notes(plan, found)))
        print(f"Results: {file}")
    return 0


def _line(result: RunResult, at: str) -> str:
    key = result.key
    return (
        f"[{at}] {key.task}, {key.side}, round {key.round}: {result.outcome}, "
        f"{counted(result.calls, 'call')}, {result.seconds:.0f} s"
    )


def _text(results: Sequence[RunResult]) -> str:
    rows = [("task", "", "passed", "calls", "input", "output", "cost", "per pass", "seconds")]
    for task, sides in [*compared(results).items(), ("all", summed(results))]:
        for at, (side, each) in enumerate(sides.items()):
            rows.append(("" if at else task, side, *_figures(each)))
    return table(rows)


def _notes(plan: EvalPlan, results: Sequence[RunResult]) -> Iterator[str]:
    ours = summed(results)["foredeck"]
    yield f"{plan.model}, {counted(plan.rounds, 'round')}."
    if ours.managed < ours.calls:
        yield (
            f"foredeck made {ours.managed} of its {ours.calls} prompts; the others went out as "
            "plain Pi sends them, since the engine was late."
        )
    if ours.asked:
        yield f"Its cost holds {counted(ours.asked, 'question')} that foredeck itself has asked."


def _figures(each: SideSum) -> tuple[str, str, str, str, str, str, str]:
    late = f" ({each.timeouts} late)" if each.timeouts else ""
    return (
        f"{each.passed}/{each.runs}{late}",
        str(each.calls),
        short_count(each.tokens),
        short_count(each.output),
        f"${each.cost:.4f}",
        "-" if each.cost_per_pass is None else f"${each.cost_per_pass:.4f}",
        f"{each.seconds:.0f}",
    )


@contextmanager
def _ends_as_interrupted() -> Iterator[None]:
    def end(*_: Any) -> None:
        raise KeyboardInterrupt

    # By default SIGTERM would end this process alone, and leave Pi and its engine running.
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _program(named: str | None) -> str:
    found = shutil.which(named or "pi")
    if found is None and named is None:
        own = checkout() / "node_modules" / ".bin" / "pi"
        found = str(own) if own.exists() else None
    if found is None:
        raise CommandRefused(
            f"there is no {named or 'pi'!r} on the PATH: install Pi (npm install -g "
            "@earendil-works/pi-coding-agent), or name it with --pi."
        )
    return str(Path(found).absolute())


def _extension(named: str | None) -> Path:
    folder = Path(named).absolute() if named else checkout()
    if folder.is_file() or (folder / "ts-shim" / "index.ts").is_file():
        return folder
    raise CommandRefused(
        f"{folder} is not foredeck's extension: name what `pi install` was given, a checkout or an "
        "unpacked package, with --extension."
    )


def checkout() -> Path:
    return Path(foredeck.__file__).resolve().parents[2]
