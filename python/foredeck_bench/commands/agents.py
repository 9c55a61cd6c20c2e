"""`foredeck bench agents`: several agents on one database."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command


def _run(args: Namespace) -> int:
    from foredeck_bench.agents import run_agents

    with Progress("working, step") as progress:
        found = run_agents(
            args.n, args.store, args.steps, advance=lambda note: progress.advance(note=note)
        )
    if args.json:
        print_json(found)
    else:
        rows = [(name.replace("_", " "), str(value)) for name, value in found.items()]
        print(table([("figure", "value"), *rows]))
    return 0 if found["ok"] else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--n", metavar="N", type=positive, default=10, help="agents (default: %(default)s)"
    )
    parser.add_argument(
        "--steps",
        metavar="N",
        type=positive,
        default=60,
        help="model calls of each agent while all work at once (default: %(default)s)",
    )
    parser.add_argument(
        "--store",
        choices=("sqlite", "xtdb"),
        default="sqlite",
        help="the store (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Let several agents, each with an engine of its own, work on one database and change the\n"
        "same files: first all at once, then each changes a file that the others have read.\n"
        "Prints the latency per call against one agent's alone, lost updates, calls that are\n"
        "missing or recorded twice, and notices of a change that an agent missed or got twice.\n"
        "Exit code 1 if there are any."
    ),
    example="foredeck bench agents --n 10 --json",
    configure=_configure,
    run=_run,
)
