"""`foredeck bench lifecycle`: every case of a session's life, on both stores and versions of Pi."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.common import add_json_flag
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command


def _run(args: Namespace) -> int:
    from foredeck.bench.lifecycle import run_lifecycle

    with Progress("running") as progress:
        found = run_lifecycle(args.section, args.rounds, lambda note: progress.advance(note=note))
    if args.json:
        print_json(found)
    else:
        cells = found["matrix"]
        rows = [
            tuple(c[n] for n in ("section", "case", "store", "pi", "state", "note")) for c in cells
        ]
        print(table([("", "case", "store", "Pi", "", ""), *rows]))
        print(
            f"\n{found['passed']} passed, {found['failed']} failed, "
            f"{found['not_applicable']} not applicable"
        )
    return 0 if found["ok"] else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--section",
        metavar="N",
        action="append",
        default=[],
        choices=[str(n) for n in range(1, 10)],
        help="only one group of cases: 1 branches, 2 compaction, 3 models, 4 crashes, 5 several "
        "agents, 6 other extensions, 7 watching, 8 security, 9 forgetting; may be repeated",
    )
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=int,
        default=10,
        help="crash rounds per store and version of Pi, 0 for none (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Run every case of a session's life against SQLite and XTDB and the supported versions\n"
        "of Pi, and print a matrix: passed, failed, or not applicable with the reason. The cases\n"
        "are tests of a checkout that scripts/setup has prepared, most of them through the real\n"
        "Pi; takes a quarter of an hour or more. Exit code 1 if a case failed."
    ),
    example="foredeck bench lifecycle --section 1 --json",
    configure=_configure,
    run=_run,
)
