"""`foredeck bench eval`: `foredeck eval` with the scripted model."""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.registry import Command


def _run(args: Namespace) -> int:
    from foredeck_bench.evaluating.run import evaluate_scripted

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
