"""`foredeck bench tasks`: agents racing for tasks, and how long `ready` takes."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command

STORES = ("sqlite", "xtdb", "machines")


def _run(args: Namespace) -> int:
    from foredeck_bench.task_board import board_figures
    from foredeck_bench.task_race import race_on

    found = {}
    with Progress("racing, round") as progress:
        for store in args.store or STORES:
            found[store] = race_on(store, args.rounds, progress.advance)
    board = board_figures(args.tasks)
    if args.json:
        print_json({"races": found, "board": board})
    else:
        rows = [(s, n.replace("_", " "), str(v)) for s, f in found.items() for n, v in f.items()]
        rows += [("board", name.replace("_", " "), str(value)) for name, value in board.items()]
        print(table([("where", "figure", "value"), *rows]))
    return 0 if all(figures["ok"] for figures in found.values()) else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--rounds", metavar="N", type=positive, default=1000, help="tasks (default: %(default)s)"
    )
    parser.add_argument(
        "--store",
        choices=STORES,
        action="append",
        help="where they race: one SQLite file, one XTDB node, or two machines over one Postgres; "
        "may be repeated (default: all)",
    )
    parser.add_argument(
        "--tasks",
        metavar="N",
        type=positive,
        default=10_000,
        help="tasks in the project in which `ready` is timed (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Let two agents, each a process, claim the same task at the same moment, again and again,\n"
        "and count how many were told that they have it; then read back every task's history.\n"
        "Exit code 1 if a task had two winners or none, or if anything was lost. Then times\n"
        "`ready` in a large project."
    ),
    example="foredeck bench tasks --store sqlite --rounds 100 --json",
    configure=_configure,
    run=_run,
)
