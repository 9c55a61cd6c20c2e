"""One search: from a query to hits with their passages, and why each is where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from foredeck.errors import ForedeckError, Missing
from foredeck.model.archive import ARCHIVED
from foredeck.search.fetching import Fetched
from foredeck.search.index import Filters, IndexedText, SearchIndex
from foredeck.search.passages import passage
from foredeck.search.planning import SearchPlan, plan_query
from foredeck.search.query import Term, is_name, parse_query
from foredeck.search.ranking import Ranked, own_scores, rank
from foredeck.search.secrets import mask_secrets
from foredeck.search.texts import VERSIONED, SearchedText, texts_of
from foredeck.search.words import periods_in
from foredeck.store.protocol import Head, Store, Token

BEST_PASSAGE, PASSAGE = 1200, 200
"""Characters of the best hit's passage, and of those of the others."""

RANKED, MOST_RANKED = 200, 2_000
"""Entries that are ranked: more of them where so many are alike that others might be better, or
where many are left out."""

LeaveOut = Callable[[IndexedText], bool]


@dataclass(frozen=True, slots=True)
class SearchHit:
    """An entry that was found. `snippet`: its passage, empty where the store cannot give the text;
    `around`: its neighbours, where they were asked for, with the start of each text."""

    entry: IndexedText
    object: str
    session: str | None
    rank: Ranked
    snippet: str
    around: tuple[tuple[IndexedText, str], ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The terms that it holds."""
        return self.rank.words


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search has found. `total`: of how many; `looked`: the terms
    that were looked for; `left_out`: those that are too common beside the others; `is_part`: all
    are, so that only the newest entries were searched."""

    total: int
    hits: list[SearchHit] = field(default_factory=list)
    looked: tuple[Term, ...] = ()
    left_out: tuple[Term, ...] = ()
    is_part: bool = False


@dataclass(frozen=True, slots=True)
class RankedEntries:
    """The best entries for a query, how many there are, and how the last were looked for."""

    plan: SearchPlan
    total: int
    best: list[Ranked]


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
    for enough in (limit if leave_out is None else RANKED, MOST_RANKED):
        found = ranked_entries(index, query, filters, enough)
        chosen = _first_of_objects(index, found.best, limit, leave_out)
        if len(chosen) >= limit or len(found.best) < enough:
            break
    texts = _Texts(store, [entry for _, entry in chosen])
    hits = []
    for number, (one, entry) in enumerate(chosen):
        width = PASSAGE if number else BEST_PASSAGE
        snippet = passage(texts.of(entry), _words(found.plan.terms), width)
        session = entry.session or _met_in(index, entry.document, filters)
        hits.append(SearchHit(entry, texts.object_of(entry), session, one, snippet))
    if message_range:
        hits = [_with_neighbours(store, index, hit, message_range) for hit in hits]
    plan = found.plan
    return SearchResult(found.total, hits, plan.terms, plan.left_out, plan.is_part)


def ranked_entries(index: SearchIndex, query: str, filters: Filters, enough: int) -> RankedEntries:
    """What is found for a query, the best first: of the first `enough` no other is better.

    A name alone is looked for whole, and by its parts only where not `enough` texts have it: who
    knows the name wants the text that has it, and far more have its parts. In a query of several
    words parts say what the whole is about.
    """
    terms = parse_query(query)
    periods = list(periods_in(query))
    best: dict[int, Ranked] = {}
    for tier in (terms[:1], terms) if is_name(query) and len(terms) > 1 else (terms,):
        plan = plan_query(index, tier, filters)
        words = [index.find(term, plan.extent, filters) for term in plan.terms]
        scores = own_scores(words)
        for most in (max(RANKED, enough), MOST_RANKED):
            found = rank(words, scores, periods, lambda ids: index.candidates(ids, filters), most)
            if found.is_certain(enough):
                break
        for one in found.best:
            best.setdefault(one.id, one)
        if len(best) >= enough:
            break
    return RankedEntries(plan, len(scores.keys() | best.keys()), list(best.values()))


def _met_in(index: SearchIndex, document: str, filters: Filters) -> str | None:
    """The latest session that has met a file, of those that may be named."""
    met = reversed(index.sessions_that_met(document))
    return next((session for session in met if session not in filters.without), None)


def _words(terms: Iterable[Term]) -> list[str]:
    return [word for term in terms for phrase in term.phrases for word in phrase]


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
