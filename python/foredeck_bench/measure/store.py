"""What a store costs: at a number of objects, and under an engine; SQLite beside XTDB."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from foredeck.config import load_config
from foredeck.errors import StoreUnavailable
from foredeck.model.documents import FileDocument
from foredeck.store.protocol import Batch, Store, Token
from foredeck.store.sqlite.adapter import open_sqlite
from foredeck.xtdb.database.adapter import open_xtdb
from foredeck.xtdb.node import private_node
from foredeck.xtdb.runtime import find_runtime
from foredeck_bench.figures import Figure, timing
from foredeck_bench.made_documents import call_batch, file_document, file_path, text
from foredeck_bench.measure.growth import RESUMED_CALLS, Settings, grow

SAMPLES = 200
VERSIONS = 20
"""How many versions those documents have whose history is read."""
LONG = 25
"""How many of them there are."""
COMMIT_GOALS = {"sqlite": 2.0, "xtdb": 6.0}
"""Most milliseconds that the commit of one call's documents should take."""
STARTS = 3
_TIMEOUT_MS = 120_000
_FILL = 500
_BODY = 1_000

Advance = Callable[[str], None]


def store_figures(kind: str, store: Store, sizes: list[int], advance: Advance) -> Iterator[Figure]:
    """The figures of an empty `store`, at each of `sizes` objects. Fills it."""
    generator = random.Random(7)
    present = 0
    tokens = _long_histories(store, generator)
    for size in sorted(sizes):
        while present < size:
            count = min(_FILL, size - present)
            numbers = range(present, present + count)
            store.commit(Batch(puts=[file_document(n, text(generator, _BODY)) for n in numbers]))
            present += count
            advance(f"{kind}: {present:,} objects")
        yield from _at(kind, store, size, tokens, generator, advance)


def _long_histories(store: Store, generator: random.Random) -> list[Token]:
    """Some documents with many versions; the tokens, oldest first."""
    return [
        store.commit(Batch(puts=[_long(n, text(generator, _BODY)) for n in range(LONG)]))
        for _ in range(VERSIONS)
    ]


def _long(number: int, content: str) -> FileDocument:
    return file_document(-1 - number, content)


def _at(
    kind: str,
    store: Store,
    size: int,
    tokens: list[Token],
    generator: random.Random,
    advance: Advance,
) -> Iterator[Figure]:
    anywhere = [file_document(generator.randrange(size), "").id for _ in range(SAMPLES)]
    long = [_long(generator.randrange(LONG), "").id for _ in range(SAMPLES)]
    batches = [call_batch(f"bench-{size}", call, generator) for call in range(SAMPLES)]
    paths = [file_path(generator.randrange(size)) for _ in range(SAMPLES)]
    pins = [generator.choice(tokens) for _ in range(SAMPLES)]

    def measured(name: str, what: str, act: Callable[[int], object], goal: float | None) -> Figure:
        advance(f"{kind}: {what}")
        for n in range(SAMPLES // 10):
            act(n)
        taken = [_seconds(act, n) for n in range(SAMPLES // 10, SAMPLES)]
        return timing(f"{kind}_{name}_{size}", f"{kind}, {size:,} objects: {what}", taken, goal)

    yield measured(
        "commit", "commit of a call", lambda n: store.commit(batches[n]), COMMIT_GOALS[kind]
    )
    yield measured("read", "read", lambda n: store.get(anywhere[n], FileDocument), None)
    yield measured("as_of", "read as of", lambda n: store.get(long[n], FileDocument, pins[n]), None)
    yield measured("history", f"history ({VERSIONS})", lambda n: store.history(long[n]), None)
    yield measured(
        "query", "query by path", lambda n: store.query("file", {"source.path": paths[n]}), None
    )


def _seconds(act: Callable[[int], object], n: int) -> float:
    began = time.perf_counter()
    act(n)
    return time.perf_counter() - began


def both_stores(folder: Path, sizes: list[int], advance: Advance) -> Iterator[Figure]:
    """The figures of both stores; of SQLite alone where XTDB is not installed."""
    with closing(open_sqlite(folder / "filled.db")) as sqlite:
        yield from store_figures("sqlite", sqlite, sizes, advance)
    try:
        runtime = find_runtime(load_config().config.home)
    except StoreUnavailable as error:
        yield Figure("xtdb_start", "start of an XTDB node", None, "ms", note=str(error))
        return
    starts = []
    for number in range(STARTS):
        advance("xtdb: starting nodes")
        began = time.perf_counter()
        with private_node(folder / f"start-{number}", runtime, "rocksdb"):
            starts.append(time.perf_counter() - began)
    yield timing("xtdb_start", "start of an XTDB node, after install", starts, 2000)
    with private_node(folder / "node", runtime, "rocksdb") as node:
        running = node.running()
        assert running is not None
        with closing(open_xtdb(running.url, token=node.token(), timeout_ms=_TIMEOUT_MS)) as xtdb:
            yield from store_figures("xtdb", xtdb, sizes, advance)
        server = {"url": running.url, "token_file": node.token_file, "namespace": "engine"}
        settings = {"store": "xtdb", "xtdb": {**server, "timeout_ms": _TIMEOUT_MS}}
        yield from _under_an_engine(folder, settings, advance)


def _under_an_engine(folder: Path, settings: Settings, advance: Advance) -> Iterator[Figure]:
    """Assembly and resume of a session of `RESUMED_CALLS` calls on XTDB, beside SQLite's."""
    growths = {
        kind: grow(
            folder / f"engine-{kind}",
            lambda _calls, kind=kind: advance(f"{kind}: a session of {RESUMED_CALLS:,} calls"),  # type: ignore[misc]
            (RESUMED_CALLS,),
            more,
        )
        for kind, more in (("sqlite", None), ("xtdb", settings))
    }
    assembly = {}
    for kind, growth in growths.items():
        taken = growth.last(growth.assemble, RESUMED_CALLS)
        figure = timing(f"{kind}_assemble", f"{kind}: assembly at {RESUMED_CALLS:,} calls", taken)
        assembly[kind] = figure.value or 0.0
        yield figure
    ratio = round(assembly["xtdb"] / assembly["sqlite"], 2)
    yield Figure("xtdb_assemble_ratio", "assembly on XTDB over that on SQLite", ratio, "x", 1.3)
    text = f"xtdb: resume of a {RESUMED_CALLS:,}-call session"
    xtdb = growths["xtdb"]
    yield timing("sqlite_resume", text.replace("xtdb", "sqlite"), growths["sqlite"].resume)
    yield timing("xtdb_resume", text, xtdb.resume, 500)
    elsewhere = xtdb.resume_elsewhere
    yield timing("xtdb_resume_elsewhere", f"{text} of another machine", elsewhere)
