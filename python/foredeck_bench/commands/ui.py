"""`foredeck bench ui`: what the pages of the inspector take."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command
from foredeck.lookup.texts import short_count

CALLS, SESSIONS = 5_000, 3_000


def _run(args: Namespace) -> int:
    from foredeck_bench.inspector import measure_inspector

    with Progress("making a session, call") as progress:
        found = measure_inspector(args.calls, args.sessions, lambda _: progress.advance())
    if args.json:
        print_json(found)
        return 0
    rows = [("page", "ms", "first", "size")]
    for name, page in found["pages"].items():
        size = f"{short_count(page['bytes'])}B"
        rows.append((name, f"{page['ms']:.0f}", f"{page['first_ms']:.0f}", size))
    print(table(rows))
    print(f"\nA session of {found['calls']:,} calls, {found['sessions']:,} sessions in the store.")
    return 0


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--calls",
        metavar="N",
        type=positive,
        default=CALLS,
        help="calls of the session (default: %(default)s)",
    )
    parser.add_argument(
        "--sessions",
        metavar="N",
        type=positive,
        default=SESSIONS,
        help="other sessions in the store (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Make a long session and a store with many, and time the pages that show them, from\n"
        "opening the store to the finished HTML. Times are processor time; a page is made again\n"
        "for each request, nothing is kept in between."
    ),
    example="foredeck bench ui --calls 1000 --json",
    configure=_configure,
    run=_run,
)
