"""`foredeck bench storm`: files that change faster than anyone can tell."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command


def _run(args: Namespace) -> int:
    from foredeck_bench.storm import run_storm

    with Progress("storm") as progress:
        found = run_storm(
            args.written, args.tracked, args.idle, lambda note: progress.advance(note=note)
        )
    if args.json:
        print_json(found)
    else:
        rows = [
            (p["name"], f"{p['written']:,}", str(p["wrong"]), f"{p['settle_s']:g} s", p["note"])
            for p in found["phases"]
        ]
        print(table([("phase", "written", "wrong", "settled in", ""), *rows]))
        print(
            f"\nmemory {found['quiet_mb']} MB at rest, {found['peak_mb']} MB at most; "
            f"idle {found['idle_cpu_percent']}% of a core, at rest {found['rest_s']:g} s after the "
            "last change was stored"
        )
    return 0 if found["ok"] else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--written",
        metavar="N",
        type=positive,
        default=100_000,
        help="files written while the engine is stopped (default: %(default)s)",
    )
    parser.add_argument(
        "--tracked",
        metavar="N",
        type=positive,
        default=5_000,
        help="files that the engine follows (default: %(default)s)",
    )
    parser.add_argument(
        "--idle",
        metavar="SECONDS",
        type=positive,
        default=35,
        help="how long it is watched idling once it rests; everything is compared each half "
        "minute (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Change files under a running engine: more at once than the system can tell while the\n"
        "engine is stopped, by git checkout, as editors save, as installers do, and where nothing\n"
        "can be watched. After each phase the store must hold what is on the disk. Prints files\n"
        "written, wrong states, time to settle, peak memory and what idling costs. Takes a few\n"
        "minutes in a scratch folder; exit code 1 if a state is wrong."
    ),
    example="foredeck bench storm --json",
    configure=_configure,
    run=_run,
)
