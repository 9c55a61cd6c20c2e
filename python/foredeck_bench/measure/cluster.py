"""Two nodes over one Postgres on this machine, and how many agents they bear."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.config import load_config
from foredeck.errors import Conflict
from foredeck.store.protocol import Batch, Store
from foredeck_bench.figures import Figure, quantile, timing
from foredeck_bench.made_documents import call_batch, file_document
from foredeck_bench.postgres import private_postgres

if TYPE_CHECKING:
    from foredeck.xtdb.database.adapter import XtdbStore

SECONDS = 8.0
"""How long agents commit, one call after the other, at each number of them."""
ROUNDS = 30
_TIMEOUT_MS = 120_000

Advance = Callable[[str], None]
Open = Callable[[int], "XtdbStore"]
"""Opens one more store on the n-th machine, modulo their number."""


def cluster_figures(folder: Path, agents: tuple[int, ...], advance: Advance) -> Iterator[Figure]:
    """Latency on the writing machine and on the other, races, and agents against latency.

    Raises `StoreUnavailable` where XTDB or Postgres cannot be had.
    """
    advance("starting Postgres and two nodes")
    with _machines(folder) as open_on:
        yield from _visibility(open_on, advance)
        yield _races(open_on, advance)
        for count in agents:
            advance(f"{count} agents")
            yield _agents(open_on, count)


@contextmanager
def _machines(folder: Path) -> Iterator[Open]:
    from foredeck.xtdb.database.adapter import open_xtdb
    from foredeck.xtdb.node import private_node
    from foredeck.xtdb.runtime import find_runtime

    runtime = find_runtime(load_config().config.home)
    with (
        private_postgres() as postgres,
        postgres.in_environment(),
        private_node(folder / "one", runtime, "postgres") as one,
        private_node(folder / "two", runtime, "postgres") as two,
    ):
        reached = []
        for node in (one, two):
            running = node.running()
            assert running is not None
            reached.append((running.url, node.token()))

        def open_on(machine: int) -> XtdbStore:
            url, token = reached[machine % len(reached)]
            return open_xtdb(url, token=token, timeout_ms=_TIMEOUT_MS)

        yield open_on


def _visibility(open_on: Open, advance: Advance) -> Iterator[Figure]:
    advance("commits on one machine, seen on the other")
    generator = random.Random(1)
    commits, seen = [], []
    with closing(open_on(0)) as one, closing(open_on(1)) as two:
        for call in range(ROUNDS):
            batch = call_batch("visible", call, generator)
            began = time.perf_counter()
            token = one.commit(batch)
            committed = time.perf_counter()
            while two.latest() != token:
                time.sleep(0.002)
            commits.append(committed - began)
            seen.append(time.perf_counter() - committed)
        same = _told(one) == _told(two)
    yield timing("cluster_commit", "two nodes, one Postgres: commit of a call", commits[3:])
    yield timing("cluster_visible", "until the other machine sees it", seen[3:])
    yield Figure("cluster_histories", "histories that differ", float(not same), "", 0)


def _told(store: Store) -> list[tuple[str, int, str]]:
    changes = store.changes_since(None, limit=10**6)
    return [(change.token, change.time_ms, change.id) for change in changes]


def _races(open_on: Open, advance: Advance) -> Figure:
    """Compare-and-puts on both machines at once, again and again."""
    advance("races between the machines")
    won = [0] * ROUNDS
    together = threading.Barrier(2)

    def race(machine: int) -> None:
        with closing(open_on(machine)) as store:
            for n in range(ROUNDS):
                document = file_document(-1000 - n, f"machine {machine}")
                together.wait()
                try:
                    store.commit(Batch(puts=[document], expect={document.id: None}))
                except Conflict:
                    continue
                won[n] += 1

    _run_all(race, 2)
    more = {"races": ROUNDS}
    wrong = sum(winners != 1 for winners in won)
    return Figure("cluster_races", "races without exactly one winner", wrong, "", 0, more=more)


@dataclass(slots=True)
class _Work:
    """What the agents of one measurement did."""

    taken: list[float] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


def _agents(open_on: Open, count: int) -> Figure:
    """So many agents on both machines, each of which commits one call after the other."""
    work = _Work()
    together = threading.Barrier(count)

    def act(agent: int) -> None:
        generator = random.Random(agent)
        taken: list[float] = []
        with closing(open_on(agent)) as store:
            together.wait()
            until = time.perf_counter() + SECONDS
            while time.perf_counter() < until:
                batch = call_batch(f"agents-{count}-{agent}", len(taken), generator)
                began = time.perf_counter()
                store.commit(batch)
                taken.append(time.perf_counter() - began)
        with work.lock:
            work.taken += taken

    began = time.perf_counter()
    _run_all(act, count)
    passed = time.perf_counter() - began
    rate = round(len(work.taken) / passed, 1)
    return timing(
        f"cluster_agents_{count}",
        f"{count} committing without a pause: each commit",
        work.taken,
        commits_per_second=rate,
        p99=round(1000 * quantile(work.taken, 0.99), 2),
    )


def _run_all(target: Callable[[int], None], count: int) -> None:
    """Run `target` in so many threads; raises what the first of them raised."""
    failed: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            target(number)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
