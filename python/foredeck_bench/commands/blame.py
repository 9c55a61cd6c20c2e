"""`foredeck bench blame`: how long it takes to say who wrote the lines of a file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command


def _run(args: Namespace) -> int:
    from foredeck_bench.blame import MOST_S, SHAPES, run_blame

    shapes = SHAPES if args.lines is None else [(args.lines, args.versions)]
    with Progress("storing", total=sum(versions for _, versions in shapes)) as progress:
        found = [
            run_blame(lines, versions, advance=lambda note: progress.advance(note=note))
            for lines, versions in shapes
        ]
    ok = all(each["right"] and each["seconds"] <= MOST_S for each in found)
    if args.json:
        print_json({"files": found, "ok": ok})
    else:
        names = ("lines", "versions", "seconds", "busy", "right")
        print(table([names, *(tuple(str(each[name]) for name in names) for each in found)]))
    return 0 if ok else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--lines",
        metavar="N",
        type=positive,
        help="lines of the file (default: two files, of 100,000 lines and of 500)",
    )
    parser.add_argument(
        "--versions",
        metavar="N",
        type=positive,
        default=20,
        help="with --lines: versions of it (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Make files of many lines and of many versions, and ask who wrote each line: a file of\n"
        "100,000 lines in 20 versions, and one of 500 lines in 2,000. `busy` is processor time.\n"
        "Exit code 1 where a line is put down to the wrong version, or it took over 2 s."
    ),
    example="foredeck bench blame --json",
    configure=_configure,
    run=_run,
)
