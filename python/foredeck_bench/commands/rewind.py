"""`foredeck bench rewind`: rewinding that is killed half-way."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command


def _run(args: Namespace) -> int:
    from foredeck_bench.rewind import run_rewind

    with Progress("rewinding", total=args.rounds) as progress:
        found = run_rewind(args.rounds, args.seed, lambda note: progress.advance(note=note))
    if args.json:
        print_json({"seed": args.seed, **found})
    else:
        rows = [(name.replace("_", " "), str(value)) for name, value in found.items()]
        print(table([("figure", "value"), *rows]))
    return 0 if found["ok"] else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=positive,
        default=100,
        help="sessions that are rewound (default: %(default)s)",
    )
    parser.add_argument("--seed", metavar="S", type=int, default=1, help="do the same again")
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Rewind sessions of random edits, writes, moves, deletions and commands to a random call,\n"
        "kill the process at one of the files, have a person change a file in every other round,\n"
        "and go on. Exit code 1 where a file was neither old nor new, where the files were not\n"
        "what they had been in the end, or where the person's change was lost."
    ),
    example="foredeck bench rewind --rounds 100 --json",
    configure=_configure,
    run=_run,
)
