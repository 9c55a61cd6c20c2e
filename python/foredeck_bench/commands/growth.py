"""`foredeck bench growth`: many sessions in one store."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command
from foredeck.lookup.texts import short_count


def _run(args: Namespace) -> int:
    from foredeck_bench.growth import run_growth

    with Progress("growing") as progress:
        found = run_growth(
            args.sessions, args.calls, advance=lambda note: progress.advance(note=note)
        )
    if args.json:
        print_json(found)
    else:
        _print(found)
    return 0 if found["ok"] else 1


def _print(found: dict[str, Any]) -> None:
    rows = [
        (
            str(point["sessions"]),
            f"{short_count(point['store_bytes'])}B",
            f"{short_count(point['bytes_per_session'])}B",
            f"{point['start_ms']:.1f}",
            f"{point['assemble_ms']:.1f}",
            f"{point['assemble_p95_ms']:.1f}",
            f"{point['resume_ms']:.1f}",
        )
        for point in found["checkpoints"]
    ]
    head = ("sessions", "store", "each", "start ms", "assemble ms", "p95 ms", "resume ms")
    print(table([head, *rows]))
    drift = ", ".join(f"{name} x{factor}" for name, factor in found["drift"].items())
    print(f"\nlate sessions against early ones: {drift}")
    print(
        f"{found['forgotten']} forgotten in {found['forget_ms']:.0f} ms, vacuum "
        f"{found['vacuum_ms']:.0f} ms: {short_count(found['bytes_before'])}B, now "
        f"{short_count(found['bytes_after'])}B; {found['left']} left behind, "
        f"{found['changed']} prompts of other sessions changed"
    )


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--sessions",
        metavar="N",
        type=positive,
        default=200,
        help="sessions in the store; a year of heavy use has 2000 (default: %(default)s)",
    )
    parser.add_argument(
        "--calls",
        metavar="N",
        type=positive,
        default=24,
        help="model calls of each session (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Put many sessions into one store, each with an engine of its own that reads and edits\n"
        "the same files, and print at ten points what a session adds to the store, how long an\n"
        "engine takes to its first assembled call, each assembly, and a session of the first\n"
        "days to be taken up again. Then every other session is forgotten and the file vacuumed.\n"
        "Exit code 1 if that leaves something behind or changes a prompt of another session."
    ),
    example="foredeck bench growth --sessions 2000 --json",
    configure=_configure,
    run=_run,
)
