"""`foredeck bench crash`: processes killed without warning, and what is left."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command

TARGETS = ("all", "engine", "pi", "both", "node")
STORES = ("sqlite", "xtdb")


def _run(args: Namespace) -> int:
    from foredeck_bench.crash.run import CrashPlan, run_crash

    plan = CrashPlan(args.rounds, args.store, args.target, args.seed, args.pi)
    with Progress("killing, round", total=args.rounds) as progress:
        tally = run_crash(plan, lambda note: progress.advance(note=note))
    found = tally.to_json()
    if args.json:
        print_json({"store": args.store, "target": args.target, "seed": args.seed, **found})
    else:
        killed = found.pop("killed")
        times = found.pop("recovery_s")
        rows = [(f"killed {name}", str(count)) for name, count in killed.items()]
        rows += [(name.replace("_", " "), str(value)) for name, value in found.items()]
        rows += [(f"seconds to recover, {name}", str(value)) for name, value in times.items()]
        print(table([("figure", "value"), *rows]))
    return 0 if tally.failures == 0 else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--rounds", metavar="N", type=positive, default=300, help="rounds (default: %(default)s)"
    )
    parser.add_argument(
        "--store", choices=STORES, default="sqlite", help="the store (default: %(default)s)"
    )
    parser.add_argument(
        "--target",
        choices=TARGETS,
        default="all",
        help="what is killed: the engine, Pi, both at once, the XTDB node; `all` shares the rounds "
        "between the first three (default)",
    )
    parser.add_argument(
        "--seed", metavar="S", type=int, default=1, help="choose the same moments again"
    )
    parser.add_argument(
        "--pi", metavar="VERSION", default="0.87.1", help="version of Pi (default: %(default)s)"
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Kill the engine, Pi, both, or the XTDB node with SIGKILL: at random moments, before the\n"
        "commit of a call, between commit and reply, between reply and send, between send and\n"
        "acknowledgement. Then compare what the provider receives with what it receives of a run\n"
        "that nobody kills, and what the store holds with what was acknowledged. A part of the\n"
        "rounds goes through the real Pi of a checkout, with a scripted model. Runs in scratch\n"
        "folders; 300 rounds take some five minutes. Exit code 1 if anything was lost, doubled,\n"
        "different or left behind."
    ),
    example="foredeck bench crash --rounds 300 --json",
    configure=_configure,
    run=_run,
)
