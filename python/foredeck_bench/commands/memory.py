"""`foredeck bench memory`: whoever is killed, memory has all of it once."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.common import add_json_flag
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command
from foredeck_bench.commands.common import STORES, add_rounds, add_stores_and_seed, noting


def _run(args: Namespace) -> int:
    from foredeck_bench.remembering.crash import crash_on

    found = {}
    for store in args.store or STORES:
        with Progress(f"{store}: killing, round", total=args.rounds) as progress:
            found[store] = crash_on(store, args.rounds, args.seed, noting(progress))
    if args.json:
        print_json(found)
    else:
        rows = [
            (store, name, str(value))
            for store, figures in found.items()
            for name, value in figures.items()
        ]
        print(table([("store", "figure", "value"), *rows]))
    return 0 if all(figures["ok"] for figures in found.values()) else 1


def _configure(parser: ArgumentParser) -> None:
    add_rounds(parser, "sessions on each store in which a process is killed")
    add_stores_and_seed(parser)
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Kill with SIGKILL whoever reads out a session, accepts what waits in the inbox, or\n"
        "imports a session with its memory: before, within and after each commit. Another process\n"
        "does the same again, and what memory holds is compared with a run that nobody disturbed.\n"
        "Exit code 1 if anything was lost, written twice, or left half."
    ),
    example="foredeck bench memory --store sqlite --json",
    configure=_configure,
    run=_run,
)
