"""`foredeck bench extraction`: what recorded sessions leave in memory, with a fixed extractor."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from foredeck.cli.common import add_json_flag
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command

MOST_JUNK = 0.1


def _run(args: Namespace) -> int:
    from foredeck_bench.remembering.recorded import measure_recorded

    with Progress("reading out sessions") as progress:
        found = measure_recorded(args.path, progress.advance)
    if args.json:
        print_json(found)
    else:
        print(table([("figure", "value"), *((name, str(value)) for name, value in found.items())]))
    return 0 if found["junk"]["rate"] < MOST_JUNK else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "path", metavar="PATH", nargs="+", type=Path, help="histories: files or folders"
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Read recorded sessions out turn by turn, with an extractor that answers by fixed rules,\n"
        "some of it malformed, twice, about itself or made up: lines kept, proposed, refused and\n"
        "why, the junk rate of a user who accepts everything, and what the questions would cost.\n"
        "Exit code 1 where the junk rate is 10% or more."
    ),
    example="foredeck bench extraction ../shared/transcripts --json",
    configure=_configure,
    run=_run,
)
