"""Agents racing for tasks: whoever is first has a task, and nobody else.

Each agent is a process with a store of its own, as an engine has it: on one SQLite file, on the
local copy of one XTDB node, or on two machines whose nodes share one Postgres. One of them makes a
task, all claim it at the same moment, and the winner closes it.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress, print_json, table
from foredeck.cli.registry import Command
from foredeck.config import Config, load_config
from foredeck.errors import ForedeckError, ToolError
from foredeck.model.documents import Provenance
from foredeck.model.ids import uuid7
from foredeck.model.tasks import TaskDependency, TaskDocument
from foredeck.store.kind import open_store
from foredeck.store.protocol import Batch, LocalStore
from foredeck.store.sqlite.adapter import open_sqlite
from foredeck.tasks.board import Actor
from foredeck.tasks.session import SessionTasks
from foredeck.tasks.work import NewTask, TaskWork
from foredeck_bench.crash.homes import NODE_TIMEOUT_MS, prepared
from foredeck_bench.crash.workers import end
from foredeck_bench.figures import quantile
from foredeck_bench.postgres import private_postgres

PROJECT = "race"
_SEEN_SECONDS = 60.0
"""How long an agent waits until it sees what another has written."""
_ANSWER_SECONDS = 120.0

Advance = Callable[[], None]
Settings = Mapping[str, Any]
"""The configuration of one agent's machine."""


def race_on(store: str, rounds: int, advance: Advance = lambda: None) -> dict[str, Any]:
    """Two agents on a private store, `sqlite`, `xtdb` or `machines`; what `--json` prints.

    Raises `StoreUnavailable` where XTDB or Postgres cannot be had.
    """
    with (
        tempfile.TemporaryDirectory(prefix="foredeck-race-") as name,
        _homes(store, Path(name)) as s,
    ):
        return {"store": store, **race(s, rounds, advance)}


def race(
    machines: Sequence[Settings], rounds: int, advance: Advance = lambda: None
) -> dict[str, Any]:
    """Let one agent on each of the machines race for `rounds` tasks, and count.

    winners_missing, winners_doubled  rounds in which nobody, or more than one, was told of a win
    provisional                       claims that were not decided
    lost                              tasks whose claim or summary the store does not have, or twice
    claim_ms                          50th and 95th percentile of a claim, won or lost
    """
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(len(machines))
    agents = []
    for number, settings in enumerate(machines):
        ours, theirs = context.Pipe()
        process = context.Process(target=_agent, args=(dict(settings), number, start, theirs))
        process.start()
        agents.append((process, ours))
    try:
        pipes = [pipe for _, pipe in agents]
        found = [_round(pipes, number, advance) for number in range(rounds)]
        lost = _lost(pipes)
    finally:
        for process, pipe in agents:
            pipe.close()
            end(process)
    return _figures(rounds, found, lost)


def _round(pipes: Sequence[Connection], number: int, advance: Advance) -> list[tuple[str, float]]:
    advance()
    maker = pipes[number % len(pipes)]
    id = _ask(maker, ("make", f"task {number}"))
    for pipe in pipes:
        pipe.send(("claim", id))
    answers: list[tuple[str, float]] = [_answer(pipe) for pipe in pipes]
    for pipe, (said, _) in zip(pipes, answers, strict=True):
        if said == "won":
            _ask(pipe, ("close", id))
    return answers


def _lost(pipes: Sequence[Connection]) -> list[str]:
    return sorted({text for pipe in pipes for text in _ask(pipe, ("check", ""))})


def _figures(rounds: int, found: list[list[tuple[str, float]]], lost: list[str]) -> dict[str, Any]:
    said = [[what for what, _ in answers] for answers in found]
    wins = [answers.count("won") for answers in said]
    seconds = [taken for answers in found for _, taken in answers]
    odd = sorted({what for answers in said for what in answers} - {"won", "lost", "provisional"})
    figures: dict[str, Any] = {
        "rounds": rounds,
        "winners_missing": wins.count(0),
        "winners_doubled": sum(count > 1 for count in wins),
        "provisional": sum(answers.count("provisional") for answers in said),
        "lost": len(lost),
        "wins": [sum(answers[n] == "won" for answers in said) for n in range(len(said[0]))],
        "claim_ms": [round(quantile(seconds, q) * 1000, 1) for q in (0.5, 0.95)],
        "examples": [*odd, *lost][:5],
    }
    bad = ("winners_missing", "winners_doubled", "provisional", "lost")
    figures["ok"] = not odd and not any(figures[name] for name in bad)
    return figures


def _ask(pipe: Connection, command: tuple[str, str]) -> Any:
    pipe.send(command)
    return _answer(pipe)


def _answer(pipe: Connection) -> Any:
    if not pipe.poll(_ANSWER_SECONDS):
        raise TimeoutError("an agent does not answer")
    return pipe.recv()


# An agent's process


def _agent(settings: dict[str, Any], number: int, start: Any, pipe: Connection) -> None:
    with closing(open_store(Config(**settings))) as store:
        racer = _Racer(store, number, start)
        while True:
            try:
                command, text = pipe.recv()
            except EOFError:
                return
            pipe.send(getattr(racer, command)(text))


class _Racer:
    """One agent."""

    def __init__(self, store: LocalStore, number: int, start: Any) -> None:
        self._store = store
        self._start = start
        self._work = TaskWork(store, PROJECT, Actor(f"agent-{number}"))

    def make(self, title: str) -> str:
        self._work.board.refresh()
        return self._work.create(NewTask(title)).id

    def claim(self, id: str) -> tuple[str, float]:
        self._see(id)
        self._start.wait(_ANSWER_SECONDS)
        began = time.perf_counter()
        said = self._claimed(id)
        return said, time.perf_counter() - began

    def _claimed(self, id: str) -> str:
        try:
            return "provisional" if self._work.claim(id).provisional else "won"
        except ToolError as error:
            return "lost" if str(error).startswith("Already claimed by") else str(error)
        except ForedeckError as error:
            return f"{type(error).__name__}: {error}"

    def close(self, id: str) -> None:
        self._work.close(id, "completed", f"done by {self._work.actor.session}")

    def check(self, _: str) -> list[str]:
        """What the store does not have as it should, once what others wrote has come."""
        deadline = time.monotonic() + _SEEN_SECONDS
        while True:
            self._work.board.refresh()
            wrong = [text for task in self._work.board.all() if (text := self._wrong(task.id))]
            if not wrong or time.monotonic() > deadline:
                return wrong
            time.sleep(0.1)

    def _wrong(self, id: str) -> str | None:
        versions = [(h.fields["status"], h.fields["session"]) for h in self._store.history(id)]
        winner = versions[-1][1]
        wanted = [("open", None), ("in_progress", winner), ("closed", winner)]
        return None if versions == wanted else f"{id}: {versions}"

    def _see(self, id: str) -> None:
        deadline = time.monotonic() + _SEEN_SECONDS
        while True:
            self._work.board.refresh()
            if self._work.board.get(id) is not None:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"task {id} is not seen")
            time.sleep(0.01)


# Where they meet


@contextmanager
def _homes(store: str, folder: Path) -> Iterator[list[Settings]]:
    if store == "machines":
        with _two_machines(folder) as machines:
            yield machines
        return
    with prepared(folder / "home", store):
        more = {"xtdb": {"timeout_ms": NODE_TIMEOUT_MS}} if store == "xtdb" else {}
        yield [{"home": folder / "home", "store": store, **more}] * 2


@contextmanager
def _two_machines(folder: Path) -> Iterator[list[Settings]]:
    from foredeck.xtdb.node import private_node
    from foredeck.xtdb.runtime import find_runtime

    runtime = find_runtime(load_config(environ=os.environ).config.home)
    with (
        private_postgres() as postgres,
        postgres.in_environment(),
        private_node(folder / "one", runtime, "postgres") as one,
        private_node(folder / "two", runtime, "postgres") as two,
    ):
        machines: list[Settings] = []
        for number, node in enumerate((one, two)):
            running = node.running()
            assert running is not None
            xtdb = {
                "url": running.url,
                "token_file": node.token_file,
                "timeout_ms": NODE_TIMEOUT_MS,
            }
            machines.append({"home": folder / f"home-{number}", "store": "xtdb", "xtdb": xtdb})
        yield machines


# The command


STORES = ("sqlite", "xtdb", "machines")


def _run(args: Namespace) -> int:
    found = {}
    with Progress("racing, round") as progress:
        for store in args.store or STORES:
            found[store] = race_on(store, args.rounds, progress.advance)
    board = board_figures(args.tasks)
    if args.json:
        print_json({"races": found, "board": board})
    else:
        rows = [(s, n.replace("_", " "), str(v)) for s, f in found.items() for n, v in f.items()]
        rows += [("board", name.replace("_", " "), str(value)) for name, value in board.items()]
        print(table([("where", "figure", "value"), *rows]))
    return 0 if all(figures["ok"] for figures in found.values()) else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--rounds", metavar="N", type=positive, default=1000, help="tasks (default: %(default)s)"
    )
    parser.add_argument(
        "--store",
        choices=STORES,
        action="append",
        help="where they race: one SQLite file, one XTDB node, or two machines over one Postgres; "
        "may be repeated (default: all)",
    )
    parser.add_argument(
        "--tasks",
        metavar="N",
        type=positive,
        default=10_000,
        help="tasks in the project in which `ready` is timed (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Let two agents, each a process, claim the same task at the same moment, again and again,\n"
        "and count how many were told that they have it; then read back every task's history.\n"
        "Exit code 1 if a task had two winners or none, or if anything was lost. Then times\n"
        "`ready` in a large project."
    ),
    example="foredeck bench tasks --store sqlite --rounds 100 --json",
    configure=_configure,
    run=_run,
)


# A large board


_AT_ONCE = 1_000
_TIMES = 50
_START_MS = 1_777_777_200_000


def board_figures(count: int) -> dict[str, Any]:
    """Milliseconds, in a project of `count` tasks of which every second waits for another: reading
    all of them once; `ready` by the model's tool with nothing new, and after a change of one."""
    with (
        tempfile.TemporaryDirectory(prefix="foredeck-tasks-") as name,
        closing(open_sqlite(Path(name) / "tasks.db")) as store,
    ):
        tasks = _tasks(count)
        for start in range(0, count, _AT_ONCE):
            store.commit(Batch(puts=[*tasks[start : start + _AT_ONCE]]))
        session = SessionTasks(TaskWork(store, "project", Actor("bench")), "bench")
        ready = {"action": "ready"}
        loaded = _milliseconds(lambda: session.query.run(ready))
        again = [_milliseconds(lambda: session.query.run(ready)) for _ in range(_TIMES)]
        changed = []
        for number in range(_TIMES):
            session.work.update(tasks[2 * number % count].id, {"priority": number % 5})
            changed.append(_milliseconds(lambda: session.query.run(ready)))
    return {
        "tasks": count,
        "load_ms": round(loaded, 1),
        "ready_ms": [round(quantile(again, q), 2) for q in (0.5, 0.95)],
        "ready_after_a_change_ms": [round(quantile(changed, q), 2) for q in (0.5, 0.95)],
    }


def _tasks(count: int) -> list[TaskDocument]:
    made: list[TaskDocument] = []
    for number in range(count):
        waits = [TaskDependency(on=made[-1].id)] if number % 2 else []
        task = TaskDocument(
            id=uuid7(_START_MS + number),
            project="project",
            title=f"Task number {number} of a large project",
            content="What it is about, in a sentence or two.",
            priority=number % 5,
            dependencies=waits,
            created_ms=_START_MS + number,
            updated_ms=_START_MS + number,
            provenance=Provenance(origin="bench", generator="agent"),
        )
        made.append(task.seal())
    return made


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000
