"""All rounds of `foredeck bench crash`, divided among victims and ways to drive an engine."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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
