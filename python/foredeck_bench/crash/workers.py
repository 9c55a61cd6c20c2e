"""Processes that say over a pipe where they are, so that they can be killed there."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from foredeck.config import Config
from foredeck.store.kind import open_store
from foredeck.store.protocol import LocalStore
from foredeck_bench.crash.homes import NODE_TIMEOUT_MS, check_database
from foredeck_bench.crash.tally import Tally

_ANSWER_S = 180.0


def store_settings(home: Path, store: str) -> dict[str, Any]:
    """The fields of `Config` with which a worker opens the store in `home`."""
    more = {"xtdb": {"timeout_ms": NODE_TIMEOUT_MS}} if store == "xtdb" else {}
    return {"home": home, "store": store, **more}


def opened(home: Path, store: str) -> closing[LocalStore]:
    """The store in `home`, for the process that checks it."""
    return closing(open_store(Config(**store_settings(home, store)), lazy=True))


def start(work: Callable[..., None], *arguments: Any) -> tuple[BaseProcess, Connection]:
    """Run `work` in a process of its own; it gets the other end of the pipe as last argument."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([work.__module__])
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(*arguments, theirs))
    process.start()
    theirs.close()
    return process, ours


def received(pipe: Connection) -> Any:
    """What a worker says next. Raises `TimeoutError` where it says nothing."""
    if not pipe.poll(_ANSWER_S):
        raise TimeoutError("a process of the bench does not answer")
    return pipe.recv()


def kill(process: BaseProcess) -> None:
    """As the system does when it runs out of memory."""
    if process.pid is not None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def end(process: BaseProcess, patience_s: float = 30.0) -> None:
    """Wait for a process that is about to end, and kill it where it does not."""
    process.join(patience_s)
    process.kill()
    process.join()


@dataclass
class WorkerTally:
    """Counts of one store. `fault` counts by field; all of those must be 0."""

    rounds: int = 0
    killed: Counter[str] = field(default_factory=Counter)
    """Rounds by what was struck."""
    lost: int = 0
    """Of what an undisturbed round has."""
    doubled: int = 0
    database: int = 0
    """Whether XTDB and the local copy differ."""
    examples: list[str] = field(default_factory=list)

    def fault(self, name: str, text: str) -> None:
        """Count something that must not happen."""
        setattr(self, name, getattr(self, name) + 1)
        self.examples = [*self.examples, f"{name}: {text}"][:5]

    def check_database(self, home: Path, store: str) -> None:
        """Compare XTDB with the local copy, once everything is delivered."""
        tally = Tally()
        check_database(home, store, tally)
        if tally.failures:
            self.fault("database", str(tally.examples))

    def to_json(self) -> dict[str, Any]:
        """As a bench prints it."""
        bad = {name: getattr(self, name) for name in self.faults()}
        return {
            "rounds": self.rounds,
            **bad,
            "killed": dict(sorted(self.killed.items())),
            "examples": self.examples,
            "ok": not any(bad.values()),
        }

    def faults(self) -> tuple[str, ...]:
        """The fields that must be 0."""
        return ("lost", "doubled", "database")
