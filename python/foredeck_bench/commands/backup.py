"""`foredeck bench backup`: how long a backup takes, and what a session notices of it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command


def _run(args: Namespace) -> int:
    from foredeck_bench.backups import run_backup

    with Progress("backup, step") as progress:
        found = run_backup(args.mib, progress.advance)
    if args.json:
        print_json(found)
        return 0 if found["equal"] else 1
    names = ("commits", "median_ms", "longest_ms")
    rows = [[when, *(str(found[when][name]) for name in names)] for when in ("before", "beside")]
    print(
        f"{found['mib']:,} MiB: backed up in {found['backup_s']} s, restored in "
        f"{found['restore_s']} s, {'equal' if found['equal'] else 'NOT EQUAL'}"
    )
    print(table([["commits of another", *names], *rows]))
    return 0 if found["equal"] else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--mib",
        metavar="N",
        type=positive,
        default=250,
        help="size of the store (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Fill a store in SQLite, back it up while somebody else commits to it up to 200 times a\n"
        "second, restore the backup elsewhere, and compare. `before` and `beside` are the commits\n"
        "without and with a backup beside them. Exit code 1 where the two are not equal."
    ),
    example="foredeck bench backup --mib 50",
    configure=_configure,
    run=_run,
)
