"""Many sessions in one store: do size, start and assembly stay what they were?

Each session has an engine of its own in this process, on real files that it reads and edits.
Times are processor time of all threads of this process, not wall-clock time: with that, other work
of the machine would look like drift.
"""

from __future__ import annotations

import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress, print_json, table
from foredeck.cli.registry import Command
from foredeck.config import Config
from foredeck.engine.engine import Engine
from foredeck.hosts.protocol import ToolObservedParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.lookup.prompts import prompt_at
from foredeck.model.canonical import hash_value
from foredeck.model.figures import short_count
from foredeck.store.erasing import erase, erasure_of, plan_forgetting
from foredeck.store.kind import open_store
from foredeck.store.protocol import Store
from foredeck_bench.figures import quantile
from foredeck_bench.measure.growth import folder_bytes
from foredeck_bench.work_session import WorkSession, work_host

CALLS = 24
"""Model calls of a session: two questions of a user."""
CHECKPOINTS = 10
RESUMED = 5
"""How many of the oldest sessions are resumed at a checkpoint."""

Advance = Callable[[str], None]


@dataclass(slots=True)
class Checkpoint:
    """What the sessions since the last checkpoint cost. Times in milliseconds."""

    sessions: int
    store_bytes: int
    bytes_per_session: int
    start_ms: float
    """An engine is made, the session opened and its first call assembled: the median."""
    assemble_ms: float
    assemble_p95_ms: float
    resume_ms: float
    """The same for the oldest sessions, resumed."""


@dataclass(slots=True)
class _Times:
    starts: list[float] = field(default_factory=list)
    assemblies: list[float] = field(default_factory=list)


def run_growth(
    sessions: int, calls: int = CALLS, advance: Advance = lambda _note: None
) -> dict[str, Any]:
    """Grow a store by so many sessions, forget every other one, and vacuum."""
    with tempfile.TemporaryDirectory(prefix="foredeck-growth-") as folder:
        return _Growth(Path(folder), calls, advance).run(sessions)


class _Growth:
    def __init__(self, folder: Path, calls: int, advance: Advance) -> None:
        self._config = Config(home=folder / "home")
        self._work = WorkSession(folder / "work")
        self._cwd = str(self._work.folder)
        self._calls = calls
        self._advance = advance
        self._oldest: list[SimulatedHost] = []

    def run(self, sessions: int) -> dict[str, Any]:
        points: list[Checkpoint] = []
        times = _Times()
        for number in range(1, sessions + 1):
            self._session(number, times)
            self._advance(f"session {number} of {sessions}")
            if number * CHECKPOINTS // sessions > len(points):
                points.append(self._checkpoint(number, points, times))
                times = _Times()
        forgotten = self._forget(sessions)
        drift = _drift(points)
        return {
            "sessions": sessions,
            "calls": sessions * self._calls,
            "checkpoints": [_rounded(point) for point in points],
            "drift": drift,
            **forgotten,
            "ok": forgotten["changed"] == 0 and forgotten["left"] == 0,
        }

    # ------------------------------------------------------------ growing

    def _session(self, number: int, times: _Times) -> None:
        work = self._work
        work.begin(_name(number))
        host = work_host(work.id)
        steps = work.steps(self._calls)
        began = time.process_time()
        with closing(Engine(self._config)) as engine:
            engine.open_session(host.opening(self._cwd))
            for first, step in enumerate(steps):
                for told in step.observed:
                    engine.tool_observed(
                        ToolObservedParams.model_validate({"session": work.id, **told})
                    )
                host.add(*step.messages)
                request = host.request(step.time_ms)
                at = time.process_time()
                host.accept(engine.assemble(request))
                done = time.process_time()
                times.assemblies.append(done - at)
                if first == 0:
                    times.starts.append(done - began)
        if number <= RESUMED:
            self._oldest.append(host)

    def _checkpoint(self, number: int, points: list[Checkpoint], times: _Times) -> Checkpoint:
        size = folder_bytes(self._config.home)
        before = points[-1] if points else None
        grown = size - (before.store_bytes if before else 0)
        added = number - (before.sessions if before else 0)
        return Checkpoint(
            number,
            size,
            grown // max(1, added),
            median(times.starts) * 1000,
            median(times.assemblies) * 1000,
            quantile(times.assemblies, 0.95) * 1000,
            median(map(self._resume, self._oldest)) * 1000,
        )

    def _resume(self, ended: SimulatedHost) -> float:
        """Seconds to resume an old session; no new message makes it longer."""
        host = work_host(ended.session, ended.messages)
        request = host.request(self._work.time_ms)
        began = time.process_time()
        with closing(Engine(self._config)) as engine:
            engine.open_session(host.opening(self._cwd, "resume"))
            engine.assemble(request)
            return time.process_time() - began

    # ------------------------------------------------------------ forgetting

    def _forget(self, sessions: int) -> dict[str, Any]:
        before = folder_bytes(self._config.home)
        with closing(open_store(self._config)) as store:
            kept = [_name(n) for n in range(2, sessions + 1, 2)]
            shown = {session: _last_prompt(store, session) for session in kept}
            began = time.process_time()
            self._advance("looking for what can go")
            doomed = [_name(n) for n in range(1, sessions + 1, 2)]
            going = erasure_of(plan_forgetting(store, doomed))
            erase(self._config, store, going, lambda names: self._advance(f"forgetting {names[0]}"))
            took = time.process_time() - began
            changed = sum(_last_prompt(store, session) != text for session, text in shown.items())
            left = len(store.query("session")) - len(kept)
        self._advance("vacuum")
        began = time.process_time()
        with closing(open_store(self._config)) as store:
            store.vacuum()  # type: ignore[attr-defined]
        return {
            "forgotten": len(doomed),
            "forget_ms": round(took * 1000, 1),
            "vacuum_ms": round((time.process_time() - began) * 1000, 1),
            "bytes_before": before,
            "bytes_after": folder_bytes(self._config.home),
            "changed": changed,
            "left": left,
        }


def _name(number: int) -> str:
    return f"session-{number}"


def _last_prompt(store: Store, session: str) -> str:
    """A hash of the prompt of a session's last call."""
    calls = len(store.query("call", {"session": session}))
    prompt = prompt_at(store, session, calls)
    return hash_value([prompt.system, prompt.messages])


def _drift(points: list[Checkpoint]) -> dict[str, float]:
    """The mean of the later half of the checkpoints over that of the earlier ones, but for the
    first: that also pays for what all sessions share."""
    middle = (len(points) + 1) // 2
    early, late = points[1:middle], points[middle:]
    names = ("bytes_per_session", "start_ms", "assemble_ms", "resume_ms")
    if not early:
        return {}
    return {
        name: round(
            sum(getattr(p, name) for p in late)
            / len(late)
            / max(1e-9, sum(getattr(p, name) for p in early) / len(early)),
            2,
        )
        for name in names
    }


def _rounded(point: Checkpoint) -> dict[str, Any]:
    values = {name: getattr(point, name) for name in Checkpoint.__slots__}
    return {n: round(v, 2) if isinstance(v, float) else v for n, v in values.items()}


# The command


def _run(args: Namespace) -> int:
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
