"""Finding names again: an identifier or path that a later message used, and the text that had it.

A query is a name that just one text of a session had until another one uses it, twenty texts later
or more. It is looked for among what the session held until then, once by foredeck and once by
plain FTS5: its default tokenizer, one column, any of the words, BM25.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck.derived import load_layer
from foredeck.derived.follower import Follower
from foredeck.histories.ingesting import ingest_files
from foredeck.histories.recordings import history_files
from foredeck.search.index import Filters, SearchIndex
from foredeck.search.searching import ranked_entries
from foredeck.search.texts import SearchedText
from foredeck.search.writing import Vocabulary
from foredeck.store.sqlite.adapter import open_sqlite
from foredeck_bench.search.plain import plain_fts5
from foredeck_bench.search.quality import stored_texts

APART = 20
SHORTEST_NAME = 6
PER_SESSION = 30
ENOUGH = 50

Order = Callable[["NameQuery"], list[int]]


@dataclass(frozen=True, slots=True)
class NameQuery:
    """A name, the entry that had it, and the one that uses it, of the same session."""

    name: str
    session: str
    had: int
    used: int


def measure_names(folder: Path, advance: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Read the histories of a folder into a store, index them, and ask for names."""
    with tempfile.TemporaryDirectory(prefix="foredeck-search-") as scratch:
        home = Path(scratch)
        with closing(open_sqlite(home / "foredeck.db")) as store:
            ingest_files(store, history_files([folder]))
            with Follower(store, load_layer("search"), home) as follower:
                follower.catch_up(advance)
                places = _places(follower.db)
                texts = {
                    places[place]: text
                    for text in stored_texts(store)
                    if (place := (text.document, text.token, text.part)) in places
                }
                queries = list(_queries(texts))
                index = SearchIndex(follower.db)
                return {
                    "queries": len(queries),
                    "sessions": len({query.session for query in queries}),
                    "foredeck": _shares(queries, _by_foredeck(index)),
                    "plain_fts5": _shares(queries, _by_plain(texts)),
                }


def _places(db: sqlite3.Connection) -> dict[tuple[str, str, str], int]:
    rows = db.execute("SELECT document, token, part, id FROM entry")
    return {(document, token, part): id for document, token, part, id in rows}


def _queries(texts: dict[int, SearchedText]) -> Iterator[NameQuery]:
    sessions: dict[str, list[int]] = {}
    for id in sorted(texts):
        if (session := texts[id].session) is not None:
            sessions.setdefault(session, []).append(id)
    vocabulary = Vocabulary()
    for session, ids in sessions.items():
        found = list(_of_session(session, ids, texts, vocabulary))
        yield from found[:: max(1, -(-len(found) // PER_SESSION))]


def _of_session(
    session: str, ids: Sequence[int], texts: dict[int, SearchedText], vocabulary: Vocabulary
) -> Iterator[NameQuery]:
    had: dict[str, list[int]] = {}
    for id in ids:
        text = texts[id]
        used = {word.name for word in vocabulary.notable(text.said)}
        for word in vocabulary.notable(f"{text.path or ''} {text.said} {text.output}"):
            name, before = word.name, had.setdefault(word.name, [])
            far = len(before) == 1 and id - before[0] >= APART
            if name in used and len(name) >= SHORTEST_NAME and far:
                yield NameQuery(name, session, before[0], id)
            before.append(id)


def _by_foredeck(index: SearchIndex) -> Order:
    def order(query: NameQuery) -> list[int]:
        filters = Filters(sessions=(query.session,))
        return [one.id for one in ranked_entries(index, query.name, filters, ENOUGH).best]

    return order


def _by_plain(texts: dict[int, SearchedText]) -> Order:
    ids = list(texts)
    found = plain_fts5([f"{t.path or ''}\n{t.said}\n{t.output}" for t in texts.values()])

    def order(query: NameQuery) -> list[int]:
        return [ids[n] for n in found(query.name) if texts[ids[n]].session == query.session]

    return order


def _shares(queries: Sequence[NameQuery], order: Order) -> dict[str, float]:
    """How often the text that had the name is first, and among the first five."""
    firsts = [[id for id in order(query) if id < query.used][:5] for query in queries]
    pairs = list(zip(queries, firsts, strict=True))
    count = max(1, len(pairs))
    return {
        "hit@1": round(sum(query.had in first[:1] for query, first in pairs) / count, 3),
        "hit@5": round(sum(query.had in first for query, first in pairs) / count, 3),
    }
