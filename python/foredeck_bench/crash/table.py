"""The table of kills, and `foredeck bench crash`, which runs it."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress, print_json, table
from foredeck.cli.registry import Command
from foredeck.errors import ForedeckError
from foredeck_bench.crash import stores
from foredeck_bench.crash.acts import Act, ActRounds
from foredeck_bench.crash.engine import Victim
from foredeck_bench.crash.memory_acts import ACCEPT, EXTRACT, IMPORT
from foredeck_bench.crash.other_acts import CLAIM, INDEX, REWIND
from foredeck_bench.crash.pi_rounds import PiRounds
from foredeck_bench.crash.session_acts import ENGINE, NODE, OBSERVE
from foredeck_bench.crash.stores import Tally
from foredeck_bench.crash.storm import storm_rounds
from foredeck_bench.scripted.pi_process import VERSIONS, PiWorkspace, checkout_pi

CHECKOUT = Path(__file__).resolve().parents[3]
STORES = ("sqlite", "xtdb")


class CannotRun(ForedeckError):
    pass


@dataclass(frozen=True, slots=True)
class CrashSetting:
    """What a row runs with; `seed` makes the same choices again."""

    rounds: int
    store: str = "sqlite"
    seed: int = 1
    pi: str = VERSIONS[0]
    installed: Path | None = None
    advance: Callable[[str], None] = lambda _note: None


@dataclass(frozen=True, slots=True)
class CrashRow:
    """What is killed, how its rounds are run, and on which stores."""

    text: str
    run: Callable[[CrashSetting, PiWorkspace, Tally, random.Random], None]
    stores: Sequence[str] = STORES


def _through_pi(
    victim: Victim, setting: CrashSetting, place: PiWorkspace, tally: Tally, chosen: random.Random
) -> None:
    install = checkout_pi(CHECKOUT, setting.pi)
    if install is None:
        raise CannotRun(f"Pi {setting.pi} is not installed in {CHECKOUT}: run scripts/setup there")
    where = (install, place, CHECKOUT, setting.store)
    PiRounds(*where, victim, tally, chosen).run(setting.rounds)


def _act(
    act: Act, setting: CrashSetting, place: PiWorkspace, tally: Tally, chosen: random.Random
) -> None:
    settings = stores.settings_of(place.foredeck_home, setting.store)
    ActRounds(act, settings, tally, chosen).run(setting.rounds)


def _storm(setting: CrashSetting, place: PiWorkspace, tally: Tally, _chosen: random.Random) -> None:
    if sys.platform != "linux" or shutil.which("git") is None:
        raise CannotRun("this row needs Linux and git")
    storm_rounds(place.root, setting.rounds, tally)


ROWS: dict[str, CrashRow] = {
    "engine": CrashRow("an engine and its host around a call", partial(_act, ENGINE)),
    "node": CrashRow("XTDB's node around a call", partial(_act, NODE), ("xtdb",)),
    "pi-engine": CrashRow("the engine under the real Pi", partial(_through_pi, "engine")),
    "pi": CrashRow("the real Pi, which goes on with its session", partial(_through_pi, "pi")),
    "pi-both": CrashRow("the real Pi and its engine", partial(_through_pi, "both")),
    "pi-node": CrashRow("XTDB's node under the real Pi", partial(_through_pi, "node"), ("xtdb",)),
    "observe": CrashRow("who observes a session, and XTDB's node under it", partial(_act, OBSERVE)),
    "extract": CrashRow("who reads a session out for memory", partial(_act, EXTRACT)),
    "accept": CrashRow("who accepts what memory was proposed", partial(_act, ACCEPT)),
    "import": CrashRow("who imports a session with memory", partial(_act, IMPORT)),
    "claim": CrashRow("who claims a task", partial(_act, CLAIM)),
    "rewind": CrashRow("who brings files back", partial(_act, REWIND), ("sqlite",)),
    "index": CrashRow("who makes the full-text index", partial(_act, INDEX), ("sqlite",)),
    "files": CrashRow("the engine while files change", _storm, ("sqlite",)),
}
"""Every row by its name."""


def run_row(name: str, setting: CrashSetting) -> Tally:
    """Runs a row. Raises `CannotRun` if something is not installed, `RpcError` if an
    undisturbed run of Pi fails."""
    row = ROWS[name]
    if setting.store not in row.stores:
        raise CannotRun(f"{name} is for the store {', '.join(row.stores)}")
    tally = Tally(setting.advance)
    with tempfile.TemporaryDirectory(prefix="foredeck-crash-", ignore_cleanup_errors=True) as root:
        place = PiWorkspace(Path(root))
        with stores.prepared(place.foredeck_home, setting.store, setting.installed):
            row.run(setting, place, tally, random.Random(f"{setting.seed} {name}"))
            stores.check_database(place.foredeck_home, setting.store, tally)
    return tally


# The command


def _run(args: Namespace) -> int:
    names = args.rows or [name for name, row in ROWS.items() if args.store in row.stores]
    figures: dict[str, dict[str, Any]] = {}
    for name in names:
        with Progress(f"{name}: round", total=args.rounds) as progress:
            setting = CrashSetting(
                args.rounds,
                args.store,
                args.seed,
                args.pi,
                advance=lambda note: progress.advance(note=note),
            )
            figures[name] = run_row(name, setting).to_json()
    if args.json:
        print_json({"store": args.store, "seed": args.seed, "rows": figures})
    else:
        _print_table(figures)
    return 0 if all(figure["ok"] for figure in figures.values()) else 1


def _print_table(figures: dict[str, dict[str, Any]]) -> None:
    rows = [("row", "rounds", "compared", "wrong", "seconds to recover", "what is killed")]
    for name, row in figures.items():
        rows.append(
            (
                *(name, str(row["rounds"]), _counts(row["compared"])),
                _counts(row["faults"]) or "nothing",
                ", ".join(f"{seconds:g}" for seconds in row["recovery_s"]),
                ROWS[name].text,
            )
        )
    print(table(rows))
    for row in figures.values():
        for example in row["examples"]:
            print(example)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "rows",
        metavar="ROW",
        nargs="*",
        choices=ROWS,
        help=f"what to kill: {', '.join(ROWS)} (default: all that the store has)",
    )
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=positive,
        default=30,
        help="of each row (default: %(default)s)",
    )
    parser.add_argument(
        "--store", choices=STORES, default="sqlite", help="the store (default: %(default)s)"
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
        "Kill the engine, Pi, both, the XTDB node, and processes that observe, remember, import,\n"
        "claim, rewind or index, with SIGKILL and at every place that they come to. Then compare\n"
        "prompts, files and the store with those of a run that nobody disturbed, and let two\n"
        "processes race for the same work. Runs in scratch folders, some rows through the real Pi\n"
        "of a checkout with a scripted model. Exit code 1 if anything was lost, doubled, half\n"
        "written, different or left behind."
    ),
    example="foredeck bench crash engine rewind --rounds 10 --json",
    configure=_configure,
    run=_run,
)
