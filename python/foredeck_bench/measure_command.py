"""Every figure that the project holds itself to, measured on this machine."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag
from foredeck.cli.output import Progress, coloured, print_json, table
from foredeck.cli.registry import Command
from foredeck_bench.engine_process import EngineProcess, run_step, start_engine
from foredeck_bench.figures import Figure, machine, resident_mb, timing
from foredeck_bench.long_sessions import (
    Growth,
    digest_figures,
    grow,
    history_figures,
    large_figures,
)
from foredeck_bench.scripted.pi_process import VERSIONS, checkout_pi
from foredeck_bench.work_session import WorkSession, work_host

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "ts-shim" / "bench" / "roundtrip.ts"


def hook_figures(sizes: Sequence[tuple[str, float]]) -> Iterator[Figure]:
    """A figure per size; no value without Pi."""
    rows, why = _rows()
    for size, goal in sizes:
        name = f"hook_{size.replace(' ', '').lower()}"
        text = f"context hook in Pi without the engine, {size} session"
        row = rows.get(size)
        if row is None:
            yield Figure(name, text, None, "ms", goal, why or "not measured")
            continue
        hook = row["hook_ms"]
        more = {
            "p95": round(hook["p95"], 2),
            "first": round(hook["first"], 1),
            "pi_copies_ms": round(row["copy_ms"], 1),
        }
        yield Figure(name, text, round(hook["median"], 2), "ms", goal, more=more)


def _rows() -> tuple[dict[str, Any], str]:
    install = checkout_pi(ROOT, VERSIONS[0])
    if install is None:
        return {}, "needs Pi and its Node in the checkout: run scripts/setup"
    command = [install.command[0], str(SCRIPT), "--json"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if result.returncode:
        lines = result.stderr.strip().splitlines() or ["no reason told"]
        return {}, f"the script failed: {lines[-1]}"
    return {row["size"]: row for row in json.loads(result.stdout)}, ""


STARTS = 7
LONG_CALLS = 10_000
MEMORY_CALLS = 2000
PIPE_STEPS = 40
PIPE_SIZES = (("10 KB", 10_000, 1), ("1 MB", 1_000_000, 2), ("5 MB", 5_000_000, 3))
"""Name, bytes of messages, and goal in milliseconds without assembly."""
HOOK_GOALS = (("10 KB", 1), ("1 MB", 2), ("5 MB", 5))
"""Size of the session, and goal in milliseconds without the engine."""

Advance = Callable[[str], None]


@dataclass
class Measurement:
    """The measurements asked for, in a scratch folder."""

    folder: Path
    advance: Advance = lambda _note: None

    @cached_property
    def _growth(self) -> Growth:
        return grow(self.folder / "growth", lambda _calls: self.advance("a long session"))

    def start(self) -> Iterator[Figure]:
        """Engine start to first answer."""
        times = []
        for _ in range(STARTS + 1):
            self.advance("starting engines")
            times.append(start_engine(self.folder / "start", self.folder))
        waited = [each.answered for each in times[1:]]
        busy = [each.busy for each in times[1:] if each.busy is not None]
        opened = [each.busy_open for each in times[1:] if each.busy_open is not None]
        yield timing("start", "engine start to first answer", waited, 450)
        if busy and opened:
            yield timing("start_busy", "of it processor time", busy)
            yield timing("open_busy", "processor time until a session is open", opened)

    def assemble(self) -> Iterator[Figure]:
        """Assembly per call, by length of the session."""
        growth = self._growth
        medians = {}
        for length, goal in ((50, None), (500, None), (2000, 3)):
            times = growth.last(growth.assemble, length)
            figure = timing(f"assemble_{length}", f"assembly at {length:,} tool calls", times, goal)
            medians[length] = figure.value or 0.0
            yield figure
        ratio = round(medians[2000] / medians[50], 2)
        yield Figure("assemble_growth", "assembly at 2,000 calls over that at 50", ratio, "x", 1.5)

    def commit(self) -> Iterator[Figure]:
        """The commit of a call alone."""
        times = self._growth.last(self._growth.commit, 2000)
        yield timing("commit", "the commit within it", times, 2)
        observed = self._growth.last(self._growth.observe, 2000)
        yield timing("observe", "taking in a tool's result, before the call", observed)

    def policy(self) -> Iterator[Figure]:
        """What the policy lets go, and digests."""
        times = self._growth.last(self._growth.policy, 2000)
        yield timing("policy", "asking the policy, at 2,000 tool calls", times, 5)
        self.advance("digests")
        yield from digest_figures()

    def resume(self) -> Iterator[Figure]:
        """Resuming a session of 1,000 calls."""
        text = "resume of a 1,000-call session, a day later"
        yield timing("resume", text, self._growth.resume, 400)

    def history(self) -> Iterator[Figure]:
        yield from history_figures(self.folder / "history", self.advance)

    def long(self) -> Iterator[Figure]:
        growth = grow(
            self.folder / "long",
            lambda _calls: self.advance(f"a session of {LONG_CALLS:,} calls"),
            (100, LONG_CALLS),
            resumed_at=LONG_CALLS,
            clock=time.process_time,
        )
        medians = []
        for length, goal in ((100, None), (LONG_CALLS, 5)):
            text = f"assembly at {length:,} calls, processor time"
            figure = timing(f"long_{length}", text, growth.last(growth.assemble, length), goal)
            medians.append(figure.value or 0.0)
            yield figure
        ratio = round(medians[1] / medians[0], 2) if medians[0] else None
        yield Figure(
            "long_growth", f"assembly at {LONG_CALLS:,} calls over that at 100", ratio, "x"
        )
        text = f"resume of a {LONG_CALLS:,}-call session, a day later, processor time"
        yield timing("long_resume", text, growth.resume, 6000)

    def large(self) -> Iterator[Figure]:
        yield from large_figures(self.folder / "large", self.advance)

    def store(self) -> Iterator[Figure]:
        growth = self._growth
        ratio = {
            length: growth.store_bytes[length] / growth.transcript_bytes[length]
            for length in growth.store_bytes
        }
        long, half = round(ratio[2000], 2), round(ratio[1000], 2)
        sizes = {"store_bytes": growth.store_bytes[2000]}
        sizes["transcript_bytes"] = growth.transcript_bytes[2000]
        text = "store size over transcript size"
        yield Figure("store_ratio", text, long, "x", 1.5, more={"at_1000_calls": half, **sizes})

    def pipe(self) -> Iterator[Figure]:
        for size, characters, goal in PIPE_SIZES:
            self.advance(f"a session of {size} behind the pipe")
            yield from self._pipe(size, characters, goal)

    def _pipe(self, size: str, characters: int, goal: float) -> Iterator[Figure]:
        name = size.replace(" ", "").lower()
        work = WorkSession(self.folder / f"pipe-{name}", id=f"pipe-{name}")
        host = work_host(work.id)
        while work.transcript_bytes < characters:
            host.add(*next(work.steps(1)).messages)
        requests, pings = [], []
        with EngineProcess(self.folder / "pipe", work.folder) as engine:
            engine.initialize()
            engine.open(work.id)
            run_step(engine, host, next(work.steps(1)))
            for step in work.steps(PIPE_STEPS):
                requests.append(run_step(engine, host, step))
                pings.append(engine.ping_seconds(step.messages))
        yield timing(f"request_{name}", f"request and answer, {size} session", requests)
        yield timing(f"pipe_{name}", "of it the pipe (as many bytes, no work)", pings, goal)

    def hook(self) -> Iterator[Figure]:
        self.advance("the hook in Pi")
        yield from hook_figures(HOOK_GOALS)

    def memory(self) -> Iterator[Figure]:
        work = WorkSession(self.folder / "memory", id="memory")
        host = work_host(work.id)
        with EngineProcess(self.folder / "memory-home", work.folder) as engine:
            engine.initialize()
            engine.open(work.id)
            for step in work.steps(MEMORY_CALLS):
                self.advance("an engine's memory")
                run_step(engine, host, step)
            resident = resident_mb(engine.pid)
        note = "" if resident is not None else "this system does not tell"
        value = None if resident is None else round(resident, 1)
        text = f"resident memory after {MEMORY_CALLS:,} calls"
        yield Figure("memory", text, value, "MB", 150, note)


MEASURES: dict[str, Callable[[Measurement], Iterator[Figure]]] = {
    each.__name__: each
    for each in (
        *(Measurement.start, Measurement.assemble, Measurement.commit, Measurement.policy),
        *(Measurement.resume, Measurement.history, Measurement.long, Measurement.large),
        *(Measurement.store, Measurement.pipe, Measurement.hook, Measurement.memory),
    )
}
"""Every measurement by name."""
ON_REQUEST = ("long", "large")


def measure(names: Sequence[str], advance: Advance | None = None) -> list[Figure]:
    """The figures of these measurements; for none, of all but `ON_REQUEST`. Raises
    `ForedeckError`."""
    selection = names or [name for name in MEASURES if name not in ON_REQUEST]
    with tempfile.TemporaryDirectory(prefix="foredeck-bench-") as folder:
        report = advance or (lambda _note: None)
        measurement = Measurement(Path(folder), report)
        return [
            figure
            for name, function in MEASURES.items()
            if name in selection
            for figure in function(measurement)
        ]


# The command


def _run(args: Namespace) -> int:
    with Progress("measuring, step") as progress:
        figures = measure(args.names, lambda note: progress.advance(note=note))
    machine_text = machine()
    if args.json:
        print_json({"figures": [figure.to_json() for figure in figures], "machine": machine_text})
    else:
        _print_text(figures, machine_text)
    return 0


def _print_text(figures: list[Figure], machine: dict[str, Any]) -> None:
    print(table([("figure", "median", "p95", "goal", "", ""), *map(_row, figures)]))
    missed = [figure.name for figure in figures if figure.ok is False]
    print(
        f"\n{machine['system']}, {machine['cores']} cores, Python {machine['python']}, SQLite "
        f"{machine['sqlite']}, load {machine['load']}. Another program at work makes every time "
        "longer."
    )
    passed = sum(figure.ok is True for figure in figures)
    print(f"{passed} goals met{', missed: ' + ', '.join(missed) if missed else ''}.")


def _row(figure: Figure) -> tuple[str, ...]:
    value = "-" if figure.value is None else f"{figure.value:g} {figure.unit}"
    p95 = figure.more.get("p95")
    goal = "" if figure.goal is None else f"{figure.goal:g} {figure.unit}"
    mark = {True: ("ok", "green"), False: ("missed", "red"), None: ("", "dim")}[figure.ok]
    text = f"{figure.text} ({figure.note})" if figure.note else figure.text
    return (
        figure.name,
        value,
        "" if p95 is None else f"{p95:g}",
        goal,
        coloured(mark[0].ljust(6), mark[1]),
        text,
    )


def _measure(name: str) -> str:
    # `choices` would refuse none, in Python 3.11.
    if name not in MEASURES:
        raise ArgumentTypeError(f"there is no {name!r}; there are {', '.join(MEASURES)}")
    return name


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        type=_measure,
        help=f"what to measure: {', '.join(MEASURES)} (default: all but long and large)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Measure what foredeck costs on this machine, beside what it should cost: engine start,\n"
        "assembly, commit and policy per call in sessions of up to 2,000 tool calls, digests,\n"
        "resume, a history of 5,000 messages that is new here, size of the store, requests over\n"
        "the pipe, the hook inside Pi, memory. All of it runs on a session that is made up and on\n"
        "private stores, in one to two minutes. `long` by name measures at 10,000 calls, `large`\n"
        "opens a session file of 128 MB and a store of 3,000 sessions (some minutes more).\n"
        "Exit code 0 whether the goals are met or not: a busy machine misses them."
    ),
    example="foredeck bench assemble commit --json",
    configure=_configure,
    run=_run,
)
