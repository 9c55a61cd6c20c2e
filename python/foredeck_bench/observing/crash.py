"""Kills at every step of observing, and what the store holds afterwards."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from foredeck.observations.reading import stored_notes
from foredeck_bench.crash.fuse import kill_node
from foredeck_bench.crash.homes import prepared
from foredeck_bench.crash.workers import (
    WorkerTally,
    end,
    kill,
    opened,
    received,
    start,
    store_settings,
)
from foredeck_bench.figures import quantile
from foredeck_bench.observing import worker
from foredeck_bench.observing.chat import chat, observer_on_loopback

CHUNKS = 4
ASKED, INSIDE = "asked", "committing"
STEPS = ("read", "taken", ASKED, "answered", INSIDE, "committed")
"""When somebody is killed: when a chunk was read, the lease taken, the model asked, its answer
there, at some moment of the commit, and after that."""
OPERATIONS = CHUNKS + 1
"""Observations, and one reflection: the matrix has this many times `STEPS`."""
_COMMIT_S = 0.02
_ANSWER_S = 180.0

Advance = Callable[[str], None]


@dataclass
class ObservingTally(WorkerTally):
    """Counts of one store."""

    told: int = 0
    """Rounds in which the next process said that something had been cut off."""
    untold: int = 0
    differing: int = 0
    unreached: int = 0
    recovery_s: list[float] = field(default_factory=list)

    def faults(self) -> tuple[str, ...]:
        """See `WorkerTally`."""
        return (*super().faults(), "untold", "differing", "unreached")

    def to_json(self) -> dict[str, Any]:
        """As the bench prints it; times in seconds."""
        recovery = [round(quantile(self.recovery_s, q), 2) for q in (0.5, 0.95)]
        return {**super().to_json(), "told": self.told, "recovery_s": recovery}


def crash_on(store: str, rounds: int, seed: int, advance: Advance) -> dict[str, Any]:
    """Rounds on a private store, `sqlite` or `xtdb`; with XTDB half of them kill its node."""
    tally = ObservingTally()
    with tempfile.TemporaryDirectory(prefix="foredeck-observing-") as name:
        home = Path(name) / "home"
        with prepared(home, store), observer_on_loopback(lambda: held.asked()) as port:
            held = _Rounds(home, store, port, tally, random.Random(f"{seed} {store}"))
            held.run(rounds, advance)
            tally.check_database(home, store)
    return tally.to_json()


@dataclass
class _Rounds:
    """Each round is a session of its own, in which one process is killed once."""

    home: Path
    store: str
    port: int
    tally: ObservingTally
    random: random.Random
    strike: Callable[[], None] | None = None
    """What to do while the next question waits."""

    def run(self, rounds: int, advance: Advance) -> None:
        calm, _ = self._play("calm", None)
        victims = ("engine", "node") if self.store == "xtdb" else ("engine",)
        matrix = [(n, step, who) for n in range(OPERATIONS) for step in STEPS for who in victims]
        for number in range(rounds):
            operation, step, victim = matrix[number % len(matrix)]
            session = f"killed-{number}"
            prompt, told = self._play(session, (operation, step, victim))
            if prompt != calm:
                self.tally.fault("differing", f"{session}: {victim} {step} of {operation}")
            self._check(session)
            self.tally.told += told
            cut = victim == "engine" and step in ("taken", ASKED, "answered")
            if cut and not told:
                self.tally.fault("untold", f"{session}: {step} of {operation}")
            self.tally.rounds += 1
            self.tally.killed[f"{victim} {step}"] += 1
            advance(f"killed the {victim}, {step}")

    def asked(self) -> None:
        """A question has come to the observer."""
        strike, self.strike = self.strike, None
        if strike is not None:
            strike()

    def _play(self, session: str, at: tuple[int, str, str] | None) -> tuple[str, bool]:
        """Observe a session to its end, killed at one place; its prompt, and whether the next
        process was told of what was cut off."""
        process, pipe = self._start(session)
        told = False
        began: float | None = None
        while True:
            killed = at is not None and self._run_to(process, pipe, at)
            if not killed:
                break
            at, began = None, time.monotonic()
            end(process)
            pipe.close()
            process, pipe = self._start(session)
        while True:
            said, text = received(pipe)
            if said == "stale":
                told = True
            elif said == "step":
                pipe.send("go")
            else:
                break
        if began is not None:
            self.tally.recovery_s.append(time.monotonic() - began)
        end(process)
        pipe.close()
        return text, told

    def _run_to(self, process: BaseProcess, pipe: Connection, at: tuple[int, str, str]) -> bool:
        """Let it run to a step of its n-th operation and strike; whether it was killed."""
        operation, step, victim = at
        place = {ASKED: "taken", INSIDE: "answered"}.get(step, step)
        count = 0
        while True:
            said, name = received(pipe)
            if said == "done":
                self.tally.fault("unreached", f"{step} of {operation}")
                raise RuntimeError("the session ended before the place to strike at")
            if said != "step" or name != place or count < operation:
                count += said == "step" and name == place
                pipe.send("go") if said == "step" else None
                continue
            return self._strike(process, pipe, step, victim)

    def _strike(self, process: BaseProcess, pipe: Connection, step: str, victim: str) -> bool:
        strike = self._killer(process, victim)
        if step == ASKED:
            reached = threading.Event()

            def at_question() -> None:
                strike()
                reached.set()

            self.strike = at_question
            pipe.send("go")
            if not reached.wait(_ANSWER_S):
                self.tally.fault("unreached", step)
        elif step == INSIDE:
            pipe.send("go")
            time.sleep(self.random.uniform(0, _COMMIT_S))
            strike()
        else:
            strike()
            if victim == "node":
                pipe.send("go")
        return victim == "engine"

    def _killer(self, process: BaseProcess, victim: str) -> Callable[[], None]:
        def strike() -> None:
            if victim == "node":
                kill_node(self.home)
            else:
                kill(process)

        return strike

    def _start(self, session: str) -> tuple[BaseProcess, Connection]:
        settings = store_settings(self.home, self.store)
        return start(worker.work, settings, session, CHUNKS, self.port)

    def _check(self, session: str) -> None:
        """Whether every message is covered once, and every document was written once."""
        with opened(self.home, self.store) as store:
            stored = stored_notes(store, [session])
            written = [one.id for one in stored.observations]
            written += [one.id for one in stored.reflections]
            versions = [len(store.history(id)) for id in written]
        covered = Counter(address for one in stored.observations for address in one.document.covers)
        expected = {message.address for message in chat(CHUNKS)}
        if missing := expected - covered.keys():
            self.tally.fault("lost", f"{session}: {len(missing)} messages")
        replaced = {id for one in stored.reflections for id in one.document.replaces}
        standing = [one.document for one in stored.reflections if one.id not in replaced]
        behind = Counter(id for document in standing for id in document.observations)
        twice = [name for name, times in (covered + behind).items() if times > 1]
        if twice or any(times != 1 for times in versions):
            self.tally.fault("doubled", f"{session}: {twice[:2]}")
