"""All rounds of `foredeck bench crash`, divided among victims and ways to drive an engine."""

from __future__ import annotations

import random
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress, print_json, table
from foredeck.cli.registry import Command
from foredeck.errors import ForedeckError
from foredeck_bench.crash import homes
from foredeck_bench.crash.engine_rounds import EngineRounds
from foredeck_bench.crash.fuse import Victim
from foredeck_bench.crash.pi_rounds import PiRounds
from foredeck_bench.crash.tally import Tally
from foredeck_bench.scripted.pi_process import VERSIONS, PiWorkspace, checkout_pi

Target = Literal["all", "engine", "pi", "both", "node"]
TARGETS: tuple[Target, ...] = ("all", "engine", "pi", "both", "node")

PI_SHARE = 10
"""One round in so many goes through Pi, where it need not."""

CHECKOUT = Path(__file__).resolve().parents[3]


class CannotRun(ForedeckError):
    """What the bench needs is not installed here."""


@dataclass(frozen=True, slots=True)
class CrashPlan:
    """What to run. `seed` makes the same choice of points again; Pi's version is one of
    `VERSIONS`; `installed` is the state folder in which the XTDB node is installed, if it is not
    the user's own."""

    rounds: int
    store: str = "sqlite"
    target: Target = "all"
    seed: int = 1
    pi: str = VERSIONS[0]
    installed: Path | None = None


def run_crash(plan: CrashPlan, advance: Callable[[str], None] = lambda _note: None) -> Tally:
    """Run all rounds. Raises `CannotRun` where Pi or the XTDB node is missing, `EngineFailed` or
    `RpcError` where even a run that nobody kills fails."""
    if plan.target == "node" and plan.store != "xtdb":
        raise CannotRun("there is a node to kill only with --store xtdb")
    tally = Tally()
    for number, (victim, alone, through_pi) in enumerate(shares(plan)):
        chosen = random.Random(f"{plan.seed} {number}")
        with tempfile.TemporaryDirectory(
            prefix="foredeck-crash-", ignore_cleanup_errors=True
        ) as name:
            workspace = PiWorkspace(Path(name) / "pi")
            with homes.prepared(workspace.foredeck_home, plan.store, plan.installed):
                if alone:
                    home = workspace.foredeck_home
                    EngineRounds(Path(name), home, plan.store, victim, tally, chosen, advance).run(
                        alone
                    )
                if through_pi:
                    _pi_rounds(plan, workspace, victim, tally, chosen, advance).run(through_pi)
                homes.check_database(workspace.foredeck_home, plan.store, tally)
    return tally


def shares(plan: CrashPlan) -> list[tuple[Victim, int, int]]:
    """Victim, rounds with an engine alone, and rounds through Pi, for each victim."""
    rounds = plan.rounds
    if plan.target in ("pi", "both"):
        return [(plan.target, 0, rounds)]
    if plan.target in ("engine", "node"):
        through_pi = -(-rounds // PI_SHARE)
        return [(plan.target, rounds - through_pi, through_pi)]
    each = -(-rounds // (2 * PI_SHARE))
    left = max(0, rounds - 3 * each)
    return [("engine", left, min(each, rounds)), ("pi", 0, each), ("both", 0, each)]


def _pi_rounds(
    plan: CrashPlan,
    workspace: PiWorkspace,
    victim: Victim,
    tally: Tally,
    chosen: random.Random,
    advance: Callable[[str], None],
) -> PiRounds:
    install = checkout_pi(CHECKOUT, plan.pi)
    if install is None:
        raise CannotRun(f"Pi {plan.pi} is not installed in {CHECKOUT}: run scripts/setup there")
    return PiRounds(install, workspace, CHECKOUT, plan.store, victim, tally, chosen, advance)


# The command


TARGETS = ("all", "engine", "pi", "both", "node")
STORES = ("sqlite", "xtdb")


def _run(args: Namespace) -> int:
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
        "--pi", metavar="VERSION", default=VERSIONS[0], help="version of Pi (default: %(default)s)"
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
