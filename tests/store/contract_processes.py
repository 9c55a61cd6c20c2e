"""Several processes on one database, and processes that are killed while they commit."""

from __future__ import annotations

import multiprocessing
import random
import time
from multiprocessing.connection import Connection

from foredeck.errors import Conflict
from foredeck.model.documents import Document
from foredeck.model.messages import put_blob
from foredeck.store.protocol import Batch
from foredeck.store.store import Store

from .documents import batch, note
from .factory import StoreFactory

SPAWN = multiprocessing.get_context("spawn")
ROUNDS = 12
KILLS = 3
PARTS = 4
PATIENCE_S = 240.0
"""Far beyond what anything here takes: only a process that hangs gets there."""


def count_up(factory: StoreFactory, start: Connection) -> None:
    """Add 1 to a counter `ROUNDS` times by compare-and-put, again after each lost race."""
    store = factory.open()
    start.send("ready")
    start.recv()
    lost = 0
    for _ in range(ROUNDS):
        while not _increment(store):
            lost += 1
    store.close()
    start.send(lost)


def _increment(store: Store) -> bool:
    head = store.head("counter")
    value = 0 if head is None else head.fields["value"]
    puts = batch(note("counter", value=value + 1), expect={"counter": head and head.token})
    try:
        store.commit(puts)
    except Conflict:
        return False
    return True


def race(factory: StoreFactory, name: str, start: Connection) -> None:
    """Try to be the first to claim each of `ROUNDS` names."""
    store = factory.open()
    start.send("ready")
    start.recv()
    won = []
    for n in range(ROUNDS):
        try:
            store.commit(batch(note(f"claim {n}", name), expect={f"claim {n}": None}))
            won.append(n)
        except Conflict:
            continue
    store.close()
    start.send(won)


def commit_for_ever(factory: StoreFactory, round_: int, acknowledge: Connection) -> None:
    """Commit `PARTS` documents and a blob at a time; tell of each commit once it is done."""
    store = factory.open()
    n = 0
    while True:
        blobs: dict[str, bytes] = {}
        digest = put_blob(f"{round_} {n} ".encode() * 500, blobs)
        puts = [
            note(f"{round_} {n} {part}", f"{part} " * 400, digest=digest) for part in range(PARTS)
        ]
        store.commit(Batch(puts=[*puts, note("shared", f"{round_} {n}")], blobs=blobs))
        acknowledge.send(n)
        n += 1


class ProcessContract:
    """Real processes; nothing here depends on how fast they are."""

    def _run(self, target: object, arguments: list[tuple[object, ...]]) -> list[object]:
        """Start all, let them go at once, and return what each of them tells at its end."""
        pipes, processes = [], []
        for args in arguments:
            ours, theirs = SPAWN.Pipe()
            process = SPAWN.Process(target=target, args=(*args, theirs))  # type: ignore[arg-type]
            process.start()
            pipes.append(ours)
            processes.append(process)
        for pipe in pipes:
            assert pipe.poll(PATIENCE_S), "a process did not start"
            pipe.recv()
        for pipe in pipes:
            pipe.send("go")
        results = []
        for pipe in pipes:
            assert pipe.poll(PATIENCE_S), "a process did not finish"
            results.append(pipe.recv())
        for process in processes:
            process.join(PATIENCE_S)
            assert process.exitcode == 0
        return results

    def test_no_increment_is_lost(self, factory: StoreFactory) -> None:
        self._run(count_up, [(StoreFactory(factory.opener),)] * 3)
        history = factory.open().history("counter")
        assert [head.fields["value"] for head in history] == list(range(1, 3 * ROUNDS + 1))
        assert len({head.token for head in history}) == 3 * ROUNDS

    def test_exactly_one_wins_each_race(self, factory: StoreFactory) -> None:
        opener = StoreFactory(factory.opener)
        results = self._run(race, [(opener, "one"), (opener, "two")])
        won = [n for result in results for n in result]  # type: ignore[attr-defined]
        assert sorted(won) == list(range(ROUNDS))
        store = factory.open()
        for name, result in zip(("one", "two"), results, strict=True):
            for n in result:  # type: ignore[attr-defined]
                assert store.get(f"claim {n}", Document).content == name
                assert len(store.history(f"claim {n}")) == 1

    def test_a_killed_process_leaves_no_half_commit(self, factory: StoreFactory) -> None:
        opener = StoreFactory(factory.opener)
        seed = random.randrange(2**32)
        generator = random.Random(seed)
        for round_ in range(KILLS):
            acknowledged = self._kill_while_committing(opener, round_, generator)
            self._check_round(factory, round_, acknowledged, seed)

    def _kill_while_committing(
        self, opener: StoreFactory, round_: int, generator: random.Random
    ) -> int:
        """How many commits were acknowledged before the process was killed."""
        ours, theirs = SPAWN.Pipe(duplex=False)
        process = SPAWN.Process(target=commit_for_ever, args=(opener, round_, theirs))
        process.start()
        theirs.close()
        assert ours.poll(PATIENCE_S), "the process did not start"
        time.sleep(generator.uniform(0, 0.05))
        process.kill()
        process.join()
        acknowledged = -1
        try:
            while ours.poll():
                acknowledged = ours.recv()
        except EOFError:
            pass
        assert acknowledged >= 0
        return acknowledged + 1

    def _settle(self, store: Store) -> int:
        """What was sent before the kill may still be under way to a server; how many versions
        there are."""
        seen = -1
        while seen != (count := _versions(store)):
            seen = count
            time.sleep(0.3)
        return seen

    def _check_round(
        self, factory: StoreFactory, round_: int, acknowledged: int, seed: int
    ) -> None:
        store = factory.open()
        while True:
            seen = self._settle(store)
            try:
                self._check_commits(store, round_, acknowledged, seed)
                break
            except AssertionError:
                # A busy server may have taken in what was under way between two looks here.
                if _versions(store) == seen:
                    raise
        store.close()

    def _check_commits(self, store: Store, round_: int, acknowledged: int, seed: int) -> None:
        n = 0
        while store.head(f"{round_} {n} 0") is not None:
            for part in range(PARTS):
                document = store.get(f"{round_} {n} {part}", Document)
                assert document is not None, f"half a commit (seed {seed})"
                extra = document.model_extra or {}
                assert store.blob(extra["digest"]).startswith(f"{round_} {n} ".encode())
            n += 1
        assert n in (acknowledged, acknowledged + 1), f"seed {seed}"
        assert store.get("shared", Document).content == f"{round_} {n - 1}"
        assert len([c for c in store.changes_since(None, limit=10**6) if c.id == "shared"]) == len(
            store.history("shared")
        )


def _versions(store: Store) -> int:
    return len(store.changes_since(None, limit=10**6))
