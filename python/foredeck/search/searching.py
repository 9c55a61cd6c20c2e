"""One search: from a query to hits with their passages, and why each is where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from foredeck.errors import ForedeckError, Missing
from foredeck.model.archive import ARCHIVED
from foredeck.search.fetching import Fetched
from foredeck.search.index import CANDIDATES, COUNTED, Filters, IndexedText, SearchIndex, SearchPlan
from foredeck.search.passages import passage
from foredeck.search.planning import plans_for
from foredeck.search.query import Term
from foredeck.search.ranking import Ranked, rank
from foredeck.search.secrets import mask_secrets
from foredeck.search.texts import VERSIONED, SearchedText, texts_of
from foredeck.store.protocol import Head, Store, Token

BEST_PASSAGE, PASSAGE = 1200, 200
"""Characters of the best hit's passage, and of those of the others."""

LeaveOut = Callable[[IndexedText], bool]


@dataclass(frozen=True, slots=True)
class SearchHit:
    """An entry that was found. `words`: those of the terms that it holds; `snippet`: its passage,
    empty where the store cannot give the text; `around`: its neighbours, where they were asked
    for, with the start of each text."""

    entry: IndexedText
    object: str
    session: str | None
    rank: Ranked
    words: tuple[str, ...]
    snippet: str
    around: tuple[tuple[IndexedText, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search has found. `total`: how many entries match, counted up to `COUNTED`; `looked`:
    the terms that were looked for; `left_out`: those that are too common beside the others."""

    total: int
    hits: list[SearchHit] = field(default_factory=list)
    looked: tuple[Term, ...] = ()
    left_out: tuple[Term, ...] = ()

    @property
    def is_more(self) -> bool:
        """Whether more entries may match than were counted."""
        return self.total == COUNTED


def search(
    store: Store,
    index: SearchIndex,
    query: str,
    filters: Filters | None = None,
    *,
    limit: int = 10,
    message_range: int = 0,
    leave_out: LeaveOut | None = None,
) -> SearchResult:
    """The best hits for a query, each object once; the same for the same store and query.

    `message_range`: how many neighbours before and after each hit come with it. `leave_out` is
    asked, the best first, about entries that would be among the hits; what it turns down still
    counts in the total.
    """
    filters = filters or Filters()
    # Of what may be turned down nobody knows how much is enough.
    plan, ranked = best_for(index, query, filters, limit if leave_out is None else CANDIDATES)
    if plan is None:
        return SearchResult(0)
    chosen = _first_of_objects(index, ranked, limit, leave_out)
    texts = _Texts(store, [entry for _, entry in chosen])
    hits = []
    for number, (one, entry) in enumerate(chosen):
        words = tuple(term.text for term in plan.looked if index.matching(term, [one.id]))
        width = PASSAGE if number else BEST_PASSAGE
        snippet = passage(texts.of(entry), _words(plan.looked), width)
        session = entry.session or _met_in(index, entry.document, filters)
        hits.append(SearchHit(entry, texts.object_of(entry), session, one, words, snippet))
    if message_range:
        hits = [_with_neighbours(store, index, hit, message_range) for hit in hits]
    return SearchResult(index.count(plan, filters), hits, plan.looked, plan.left_out)


def best_for(
    index: SearchIndex, query: str, filters: Filters, limit: int
) -> tuple[SearchPlan | None, list[Ranked]]:
    """The best entries for a query, at least `limit` if so many match, and how the last of them
    were looked for; None where nothing holds any of the words."""
    last: SearchPlan | None = None
    ranked: dict[int, Ranked] = {}
    for last in plans_for(index, query, filters):
        for one in rank(index.candidates(last, filters)):
            ranked.setdefault(one.id, one)
        if len(ranked) >= limit:
            break
    return last, list(ranked.values())


def _met_in(index: SearchIndex, document: str, filters: Filters) -> str | None:
    """The latest session that has met a file, of those that may be named."""
    met = reversed(index.sessions_that_met(document))
    return next((session for session in met if session not in filters.without), None)


def _words(terms: Iterable[Term]) -> list[str]:
    return [word for term in terms for word in term.words]


def _first_of_objects(
    index: SearchIndex, ranked: Sequence[Ranked], limit: int, leave_out: LeaveOut | None
) -> list[tuple[Ranked, IndexedText]]:
    """The best hits, of a file with several versions that match only the best one."""
    chosen: dict[str, tuple[Ranked, IndexedText]] = {}
    for first in range(0, len(ranked), 2 * limit):
        page = ranked[first : first + 2 * limit]
        entries = index.entries(one.id for one in page)
        for one in page:
            entry = entries[one.id]
            if len(chosen) >= limit or (leave_out is not None and leave_out(entry)):
                continue
            name = entry.document if entry.type in VERSIONED else str(entry.id)
            chosen.setdefault(name, (one, entry))
        if len(chosen) >= limit:
            break
    return list(chosen.values())[:limit]


def _with_neighbours(store: Store, index: SearchIndex, hit: SearchHit, each_way: int) -> SearchHit:
    around = index.neighbours(hit.entry, each_way)
    texts = _Texts(store, around)
    return replace(
        hit, around=tuple((entry, passage(texts.of(entry), (), PASSAGE)) for entry in around)
    )


class _Texts:
    """The texts of entries, from the store."""

    def __init__(self, store: Store, entries: Iterable[IndexedText]) -> None:
        self._found: dict[tuple[str, str], SearchedText] = {}
        heads: dict[tuple[str, str], Head] = {}
        for entry in entries:
            with suppress(Missing):  # erased since it was indexed
                head = store.head(entry.document, Token(entry.token))
                if head is not None:
                    heads[entry.document, entry.token] = head
        fetched = Fetched(store, heads.values())
        for head in heads.values():
            try:
                texts = texts_of(head, fetched)
            except (ForedeckError, LookupError, TypeError, ValueError):  # not to be had any more
                continue
            self._found.update({(text.document, text.part): text for text in texts})

    def of(self, entry: IndexedText) -> str:
        """The text of an entry, secrets masked; empty where the store does not have it."""
        text = self._found.get((entry.document, entry.part))
        if text is not None and text.is_archived:
            return ARCHIVED
        return "" if text is None else mask_secrets("\n".join((text.said, text.output)).strip())

    def object_of(self, entry: IndexedText) -> str:
        """The object that a user opens for an entry."""
        text = self._found.get((entry.document, entry.part))
        return entry.document if text is None else text.object
