"""Acts in processes of their own: killed at every place, and done again.

What a killed process leaves must be a state of an undisturbed run; acts at the same moment are
raced, too.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar, cast

from foredeck.config import Config
from foredeck.errors import StoreError
from foredeck.observations.lease import ObservingFailed
from foredeck.store.place import open_store
from foredeck.store.protocol import Batch, Origin, Token
from foredeck.store.store import Store
from foredeck_bench.crash.engine import SIGKILL, kill_node
from foredeck_bench.crash.stores import Tally

COMMITTING, COMMITTED, REFUSED = "committing", "committed", "refused"
WITHIN_S = 0.02
"""Latest moment of a kill after a place."""
PATIENCE_S = 120.0
_AGAIN_S = 0.03
RACERS = 2

Reach = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scene:
    """A session on a store, in which an act is done."""

    settings: Mapping[str, Any]
    session: str

    @property
    def folder(self) -> Path:
        """A place for the session's files."""
        return Path(self.settings["home"]).parent / self.session

    def opened(self, *, lazy: bool = False) -> closing[Store]:
        """The store; `lazy` if the local copy is enough."""
        return closing(open_store(Config(**self.settings), lazy=lazy))


@dataclass(frozen=True, slots=True)
class Act:
    """What is done in a scene.

    `outcome` is compared, so it must not depend on names or times. `atomic`: the state at each
    place is checked. `victims`: what is killed, its process or XTDB's node.
    """

    prepare: Callable[[Scene], None]
    work: Callable[[Scene, Reach, int], None]
    outcome: Callable[[Scene], object]
    races: bool = True
    atomic: bool = True
    victims: Sequence[str] = ("process",)


@dataclass(slots=True)
class Strike:
    """Kills the process or the node of `node` after so many places."""

    left: int
    place: str
    within_s: float = 0.0
    node: Path | None = None

    def __call__(self, _place: str) -> None:
        if self.left == 0:
            threading.Timer(self.within_s, self._kill).start() if self.within_s else self._kill()
        self.left -= 1

    def _kill(self) -> None:
        if self.node is not None:
            kill_node(self.node)
        else:
            os.kill(os.getpid(), SIGKILL)

    def __str__(self) -> str:
        victim = "process" if self.node is None else "node"
        return f"{victim} {'within' if self.within_s else 'at'} {self.place}"


class ReportingStore:
    """A store whose commits are places of an act."""

    def __init__(self, store: Store, reach: Reach) -> None:
        self._store = store
        self._reach = reach

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, batch: Batch, *, origin: Origin | None = None) -> Token:
        return self._reported(lambda: self._store.commit(batch, origin=origin))

    def commit_for_all(self, batch: Batch) -> Token:
        return self._reported(lambda: self._store.commit_for_all(batch))

    def _reported(self, commit: Callable[[], Token]) -> Token:
        self._reach(COMMITTING)
        try:
            token = commit()
        except StoreError:
            self._reach(REFUSED)
            raise
        self._reach(COMMITTED)
        return token


def reporting(store: Store, reach: Reach) -> Store:
    """The store, whose commits are places."""
    return cast("Store", ReportingStore(store, reach))


def patiently(action: Callable[[], T]) -> T:
    """Tries again while the database is away."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return action()
        except (StoreError, ObservingFailed):
            if time.monotonic() > until:
                raise
            time.sleep(_AGAIN_S)


@dataclass(slots=True)
class ActRounds:
    act: Act
    settings: Mapping[str, Any]
    tally: Tally
    random: Random

    def run(self, rounds: int) -> None:
        calm = Scene(self.settings, "calm")
        self.act.prepare(calm)
        places: list[str] = []
        states = [self.act.outcome(calm)] if self.act.atomic else []

        def reach(place: str) -> None:
            places.append(place)
            if self.act.atomic:
                states.append(self.act.outcome(calm))

        self.act.work(calm, reach, 0)
        states.append(self.act.outcome(calm))
        strikes = list(self._strikes(places))
        self.random.shuffle(strikes)
        for number in range(rounds):
            self._killed(number, strikes[number % len(strikes)], states)
        for number in range(rounds if self.act.races else 0):
            self._raced(number, states[-1])

    def _strikes(self, places: Sequence[str]) -> Iterator[Strike]:
        node = Path(self.settings["home"])
        for number, place in enumerate(places):
            if "process" in self.act.victims:
                yield Strike(number, place)
                if place != COMMITTED:
                    yield Strike(number, place, self.random.uniform(0.001, WITHIN_S))
            if "node" in self.act.victims and self.settings["store"] == "xtdb":
                yield Strike(number, place, node=node)

    def _killed(self, number: int, strike: Strike, states: Sequence[object]) -> None:
        scene = Scene(self.settings, f"killed-{number}")
        self.act.prepare(scene)
        (code,) = done([(self.act, scene)], strike)
        if code != (0 if strike.node else -SIGKILL):
            self.tally.fault("unreached", f"{strike}: exit code {code}")
        if self.act.atomic and (outcome := self.act.outcome(scene)) not in states:
            self.tally.fault("half", f"{strike}: {outcome!r:.300}")
        began = time.monotonic()
        (code,) = done([(self.act, scene)])
        self.tally.recovery_s.append(time.monotonic() - began)
        self._compare(scene, states[-1], f"{strike}, exit code {code}")
        self.tally.killed_at(str(strike))

    def _raced(self, number: int, expected: object) -> None:
        scene = Scene(self.settings, f"raced-{number}")
        self.act.prepare(scene)
        codes = done([(self.act, scene)] * RACERS)
        self._compare(scene, expected, f"a race, exit codes {codes}")
        self.tally.compared["races"] += 1

    def _compare(self, scene: Scene, expected: object, what: str) -> None:
        outcome = self.act.outcome(scene)
        if outcome != expected:
            self.tally.fault("differing", f"{what}: {outcome!r:.300} and not {expected!r:.300}")


def done(work: Sequence[tuple[Act, Scene]], strike: Strike | None = None) -> list[int | None]:
    """Does acts at the same moment, each in a process; returns exit codes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["foredeck_bench.crash.table"])
    start = context.Barrier(len(work))
    processes = [
        context.Process(
            target=_do, args=(act, scene, strike and replace(strike), number, start), daemon=True
        )
        for number, (act, scene) in enumerate(work)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE_S)
        process.kill()
        process.join()
    return [process.exitcode for process in processes]


def _do(act: Act, scene: Scene, strike: Strike | None, number: int, start: Any) -> None:
    start.wait(PATIENCE_S)
    act.work(scene, strike or (lambda _place: None), number)
