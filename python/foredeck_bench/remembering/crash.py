"""Kills at every commit of what memory does, and what the store holds afterwards."""

from __future__ import annotations

import io
import random
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag
from foredeck.cli.output import Progress
from foredeck.cli.registry import Command
from foredeck.config import Config
from foredeck.store.kind import open_store
from foredeck.store.portable.export import export_session
from foredeck.store.protocol import Store
from foredeck_bench.arguments import STORES, add_rounds, add_stores_and_seed, noting, print_figures
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
from foredeck_bench.remembering import worker
from foredeck_bench.remembering.worker import ACCEPT, ACTS, EXTRACT, IMPORT

MOMENTS = ("before", "within", "after")
"""Of a commit."""
_COMMITS = {EXTRACT: 1, ACCEPT: 2, IMPORT: 3}
"""How many commits of an act are struck at, in turn."""
_WITHIN_S = 0.01

Advance = Callable[[str], None]
Fingerprint = tuple[Any, ...]


@dataclass
class MemoryTally(WorkerTally):
    """Counts of one store."""

    half: int = 0
    """Rounds in which a kill left part of an act that is one transaction."""

    def faults(self) -> tuple[str, ...]:
        """See `WorkerTally`."""
        return (*super().faults(), "half")


def crash_on(store: str, rounds: int, seed: int, advance: Advance) -> dict[str, Any]:
    """Rounds on a private store, `sqlite` or `xtdb`."""
    tally = MemoryTally()
    with tempfile.TemporaryDirectory(prefix="foredeck-remembering-") as name:
        home = Path(name) / "home"
        with prepared(home, store):
            _MemoryRounds(home, store, tally, random.Random(f"{seed} {store}")).run(rounds, advance)
            tally.check_database(home, store)
    return tally.to_json()


@dataclass
class _MemoryRounds:
    """Each round is a session and a user of its own, with one act that is cut off once."""

    home: Path
    store: str
    tally: MemoryTally
    random: random.Random

    def run(self, rounds: int, advance: Advance) -> None:
        matrix = [
            (act, commit, moment)
            for commit in range(max(_COMMITS.values()))
            for act in ACTS
            for moment in MOMENTS
            if commit < _COMMITS[act]
        ]
        calm = {act: self._calm(act) for act in ACTS}
        for number in range(rounds):
            act, commit, moment = matrix[number % len(matrix)]
            session = f"killed-{number}"
            before = self._prepare(act, session)
            self._play(act, session, (commit, moment))
            found = self._fingerprint(session)
            if found not in (before, *calm[act]):
                self.tally.fault("half", f"{session}: {act}, {moment} commit {commit}: {found}")
            self._play(act, session, None)
            self._compare(f"{session}: {act}", self._fingerprint(session), calm[act][-1])
            self.tally.rounds += 1
            self.tally.killed[f"{act} {moment}"] += 1
            advance(f"{act}, {moment} a commit")

    def _calm(self, act: str) -> list[Fingerprint]:
        """What an undisturbed act leaves after each of its commits."""
        session = f"calm-{act}"
        self._prepare(act, session)
        found: list[Fingerprint] = []
        self._play(act, session, None, lambda: found.append(self._fingerprint(session)))
        return found

    def _compare(self, what: str, found: Fingerprint, expected: Fingerprint) -> None:
        there, wanted = Counter(found), Counter(expected)
        if wanted - there:
            self.tally.fault("lost", f"{what}: {list(wanted - there)[:2]}")
        if there - wanted:
            self.tally.fault("doubled", f"{what}: {list(there - wanted)[:2]}")

    def _prepare(self, act: str, session: str) -> Fingerprint:
        with opened(self.home, self.store) as store:
            if act == IMPORT:
                self._bundle(session).write_text(_bundle_of(session), encoding="utf-8")
            else:
                worker.begin(store, session)
            if act == ACCEPT:
                worker.extract(store, session)
        return self._fingerprint(session)

    def _play(
        self,
        act: str,
        session: str,
        at: tuple[int, str] | None,
        committed: Callable[[], None] = lambda: None,
    ) -> None:
        """Do an act in a process of its own; `at`: the commit, and its moment, at which it dies."""
        settings = store_settings(self.home, self.store)
        process, pipe = start(worker.work, settings, act, session, self._bundle(session))
        with closing(pipe):
            self._lead(pipe, process, at, committed)
            end(process, 60)

    def _lead(
        self,
        pipe: Connection,
        process: BaseProcess,
        at: tuple[int, str] | None,
        committed: Callable[[], None],
    ) -> None:
        number = -1
        while (said := received(pipe)) != "done":
            number += said == "committing"
            if said == "committed":
                committed()
            struck = at is not None and number == at[0]
            moment = at[1] if at is not None and struck else ""
            if (said, moment) in (("committing", "before"), ("committed", "after")):
                return kill(process)
            pipe.send("go")
            if (said, moment) == ("committing", "within"):
                time.sleep(self.random.uniform(0, _WITHIN_S))
                return kill(process)
        return None

    def _fingerprint(self, session: str) -> Fingerprint:
        """Every entry of a session by its history, and how often it was read out."""
        with opened(self.home, self.store) as store:
            entries = store.query("memory", {"session": session})
            histories = ([h.fields["act"] for h in store.history(e.id)] for e in entries)
            told = [
                (e.fields["place"], e.fields["state"], e.fields["fact"], *acts)
                for e, acts in zip(entries, histories, strict=True)
            ]
            of_session = {"session": session}
            records = [("record", h.fields["last"]) for h in store.query("extraction", of_session)]
            turns = [("turn", h.fields["user_turn"]) for h in store.query("turn", of_session)]
        return tuple(sorted(map(repr, [*told, *records, *turns])))

    def _bundle(self, session: str) -> Path:
        return self.home.parent / f"{session}.jsonl"


def _bundle_of(session: str) -> str:
    """An exported session with memory of its own."""
    text = io.StringIO()
    with tempfile.TemporaryDirectory() as name, closing(_scratch(Path(name))) as store:
        worker.begin(store, session)
        worker.extract(store, session)
        worker.accept(store, session)
        export_session(store, session, text.write)
    return text.getvalue()


def _scratch(home: Path) -> Store:
    return open_store(Config(home=home))


# The command


def _run(args: Namespace) -> int:
    found = {}
    for store in args.store or STORES:
        with Progress(f"{store}: killing, round", total=args.rounds) as progress:
            found[store] = crash_on(store, args.rounds, args.seed, noting(progress))
    print_figures(found, args, "store")
    return 0 if all(figures["ok"] for figures in found.values()) else 1


def _configure(parser: ArgumentParser) -> None:
    add_rounds(parser, "sessions on each store in which a process is killed")
    add_stores_and_seed(parser)
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Kill with SIGKILL whoever reads out a session, accepts what waits in the inbox, or\n"
        "imports a session with its memory: before, within and after each commit. Another process\n"
        "does the same again, and what memory holds is compared with a run that nobody disturbed.\n"
        "Exit code 1 if anything was lost, written twice, or left half."
    ),
    example="foredeck bench memory --store sqlite --json",
    configure=_configure,
    run=_run,
)
