"""`foredeck bench observations`: whoever is killed or faster, each message is observed once."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress
from foredeck.cli.registry import Command
from foredeck_bench.arguments import STORES, add_rounds, add_stores_and_seed, noting, print_figures
from foredeck_bench.observing.crash import crash_on
from foredeck_bench.observing.race import race_on
from foredeck_bench.observing.through_pi import through_pi


def _run(args: Namespace) -> int:
    crashes, races, sessions = {}, {}, {}
    for store in args.store or STORES:
        with Progress(f"{store}: killing, round", total=args.rounds) as progress:
            crashes[store] = crash_on(store, args.rounds, args.seed, noting(progress))
        with Progress(f"{store}: racing, round", total=args.races) as progress:
            races[store] = race_on(store, args.races, progress.advance)
        if args.through_pi:
            with Progress(f"{store}: killing, session", total=args.through_pi) as progress:
                sessions[store] = through_pi(store, args.through_pi, args.seed, noting(progress))
    found = {"crash": crashes, "race": races, "through_pi": sessions}
    print_figures(found, args, "bench", "store")
    return 0 if all(f["ok"] for each in found.values() for f in each.values()) else 1


def _configure(parser: ArgumentParser) -> None:
    add_rounds(parser, "sessions on each store in which somebody is killed")
    parser.add_argument(
        "--races",
        metavar="N",
        type=positive,
        default=1000,
        help="chunks on each store that two processes want to observe (default: %(default)s)",
    )
    parser.add_argument(
        "--through-pi",
        metavar="N",
        type=int,
        default=8,
        help="sessions on each store of the real Pi of a checkout, in which the engine, Pi or the "
        "node is killed; 0 for none (default: %(default)s)",
    )
    add_stores_and_seed(parser)
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Kill whoever observes a session with SIGKILL, at every step: when it has read the chat,\n"
        "taken the lease, asked, been answered, within the commit and after it. On XTDB half of\n"
        "the rounds kill the node instead. Another process goes on, and what would stand in the\n"
        "next prompt is compared with a run that nobody disturbed. Then two processes observe the\n"
        "same chunks at the same moment. Last, sessions of the real Pi are disturbed in the same\n"
        "way. The observer is a script on loopback. Exit code 1 if anything was lost, written\n"
        "twice, or different."
    ),
    example="foredeck bench observations --store sqlite --rounds 30 --races 100 --json",
    configure=_configure,
    run=_run,
)
