"""`foredeck bench guard`: whether the stale-edit guard holds, and what it costs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command


def _run(args: Namespace) -> int:
    from foredeck_bench.guard import run_guard

    with Progress("writing", total=args.rounds + args.files) as progress:
        found = run_guard(args.rounds, args.files, lambda note: progress.advance(note=note))
    if args.json:
        print_json(found)
    else:
        rows = [(name.replace("_", " "), str(value)) for name, value in found.items()]
        print(table([("figure", "value"), *rows]))
    return 0 if found["ok"] else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=positive,
        default=1000,
        help="changes of the file, by both agents together (default: %(default)s)",
    )
    parser.add_argument(
        "--files",
        metavar="N",
        type=positive,
        default=200,
        help="files that the timed agent knows in the end (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Let two agents with an engine each add lines to one file, each from what it last read,\n"
        "and count the lines that are gone in the end; then time the check before a write and\n"
        "before a command, as the host waits for it (median, in milliseconds). Exit code 1 where\n"
        "a line was lost, a write never got through, or the check of a write took over 5 ms."
    ),
    example="foredeck bench guard --rounds 1000 --json",
    configure=_configure,
    run=_run,
)
