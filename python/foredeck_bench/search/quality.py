"""How well a search finds the session that made a commit, by the commit's subject.

The queries are in `queries.tsv` beside the histories: commit, subject, sessions. What is compared
with is plain FTS5: its default tokenizer, one column, any of the words, BM25, the same texts.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck.derived import load_layer
from foredeck.derived.follower import Follower
from foredeck.errors import ForedeckError
from foredeck.histories.ingesting import ingest_files
from foredeck.histories.recordings import history_files
from foredeck.search.index import Filters, SearchIndex
from foredeck.search.ranking import by_session
from foredeck.search.searching import ranked_entries, search
from foredeck.search.texts import SEARCHED, Fetched, SearchedText, texts_of
from foredeck.store.protocol import Head, LocalStore
from foredeck.store.sqlite.adapter import open_sqlite
from foredeck_bench.search.plain import PlainOrder, plain_bm25, plain_fts5
from foredeck_bench.search.scale import quantiles

QUERIES = "queries.tsv"
CHUNK = 100
ENOUGH = 50
"""Hits that must be the best for certain."""


class NoQueries(ForedeckError):
    """The folder holds no queries."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class CommitQuery:
    """What is looked for, and the sessions that it is in."""

    text: str
    sessions: frozenset[str]


def measure_quality(folder: Path, advance: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Read the histories of a folder into a store, index them, and ask all queries."""
    queries = read_queries(folder / QUERIES)
    with tempfile.TemporaryDirectory(prefix="foredeck-search-") as scratch:
        home = Path(scratch)
        with closing(open_sqlite(home / "foredeck.db")) as store:
            stored_s = _timed(lambda: ingest_files(store, history_files([folder])))
            texts = list(stored_texts(store))
            size = sum(len(text.said.encode()) + len(text.output.encode()) for text in texts)
            with Follower(store, load_layer("search"), home) as follower:
                indexed_s = _timed(lambda: follower.catch_up(advance))
                follower.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                index = SearchIndex(follower.db)
                return {
                    "queries": len(queries),
                    "texts": len(texts),
                    "text_bytes": size,
                    "index_share_of_text": round(follower.path.stat().st_size / size, 2),
                    "store_write_s": round(stored_s, 2),
                    "index_s": round(indexed_s, 2),
                    "texts_per_s": round(len(texts) / indexed_s),
                    **_latency(store, index, queries),
                    **_by_foredeck(index, queries),
                    "plain_fts5": _scores(queries, _sessions_of(texts, plain_fts5)),
                    "plain_bm25": _scores(queries, _sessions_of(texts, plain_bm25)),
                }


def _by_foredeck(index: SearchIndex, queries: Sequence[CommitQuery]) -> dict[str, dict[str, float]]:
    """With the sessions in the order of how well they answer, by halves of the queries too, and in
    the order of their best hits."""
    found = {query.text: session_orders(index, query.text) for query in queries}
    return {
        "foredeck": _scores(queries, lambda text: found[text][0]),
        "foredeck_first_half": _scores(queries[::2], lambda text: found[text][0]),
        "foredeck_second_half": _scores(queries[1::2], lambda text: found[text][0]),
        "foredeck_by_best_hit": _scores(queries, lambda text: found[text][1]),
    }


def session_orders(index: SearchIndex, query: str) -> tuple[list[str], list[str]]:
    """The sessions with hits for a query: the one that answers best first, and the one with the
    best hit first."""
    best = ranked_entries(index, query, Filters(), ENOUGH).best
    entries = index.entries(one.id for one in best)
    named = {one.session: entries[one.id].session for one in best}
    orders = (by_session(best), dict.fromkeys(one.session for one in best))
    grouped, by_hit = ([named[session] or "" for session in order if session] for order in orders)
    return grouped, by_hit


def read_queries(file: Path) -> list[CommitQuery]:
    """The lines of a table of queries, without its heading. Raises `NoQueries`."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()[1:]
    except OSError as error:
        raise NoQueries(f"{file} cannot be read: {error.strerror}") from error
    rows = [line.split("\t") for line in lines if line]
    return [CommitQuery(text, frozenset(sessions.split(","))) for _commit, text, sessions in rows]


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def stored_texts(store: LocalStore) -> Iterator[SearchedText]:
    """The texts of a store, in the order in which the layer takes them in."""
    changes = [c for c in store.changes_since(None, limit=10**9) if c.type in SEARCHED]
    for first in range(0, len(changes), CHUNK):
        heads: list[Head] = []
        for change in changes[first : first + CHUNK]:
            head = store.head(change.id, change.token)
            if head is not None:
                heads.append(head)
        fetched = Fetched(store, heads)
        for head in heads:
            yield from texts_of(head, fetched)


def _latency(
    store: LocalStore, index: SearchIndex, queries: Sequence[CommitQuery]
) -> dict[str, dict[str, float]]:
    """Milliseconds of whole searches, with the passages of ten hits: by the clock, and of the
    processor."""
    times, cpu_times = [], []
    for query in queries:
        start, cpu_start = time.perf_counter(), time.process_time()
        search(store, index, query.text)
        times.append(1000 * (time.perf_counter() - start))
        cpu_times.append(1000 * (time.process_time() - cpu_start))
    return {"latency_ms": quantiles(times), "latency_cpu_ms": quantiles(cpu_times)}


def _scores(queries: Sequence[CommitQuery], order: Callable[[str], list[str]]) -> dict[str, float]:
    """hit@1, @5, @10 and the mean reciprocal rank of the first right session."""
    places = []
    for query in queries:
        found = order(query.text)
        right = (n for n, session in enumerate(found, 1) if session in query.sessions)
        places.append(next(right, None))
    count = len(places)
    hits = {
        f"hit@{n}": round(sum(1 for place in places if place and place <= n) / count, 3)
        for n in (1, 5, 10)
    }
    return hits | {"mrr": round(sum(1 / place for place in places if place) / count, 3)}


def _sessions_of(
    texts: Sequence[SearchedText], plain: Callable[[Sequence[str]], PlainOrder]
) -> Callable[[str], list[str]]:
    """The sessions of the texts that a plain search finds, each once."""
    order = plain([f"{text.said}\n{text.output}" for text in texts])

    def sessions(query: str) -> list[str]:
        found = dict.fromkeys(texts[number].session for number in order(query))
        return [session for session in found if session is not None]

    return sessions
