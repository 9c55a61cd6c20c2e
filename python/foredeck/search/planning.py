"""Which of a query's words are looked for, so that the time of a search is bounded.

To score a text costs FTS5 several times as much as to pass over it, and a word that a large part
of all texts hold says little. So in a large index the rarest words are looked for, as many as there
is time for. Where even the rarest is too common, only the newest texts are searched, and the result
says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from foredeck.search.index import Extent, Filters, SearchIndex
from foredeck.search.query import Term
from foredeck.search.tokens import WORD

SMALL = 20_000
"""In an index with this many entries all words are looked for."""

SCORED = 8_000
"""Entries that are scored at most, by estimate, each once for every word that it holds."""

_PASSED = 0.3
"""What it costs to pass over an entry outside the sessions that are searched, if to score one
costs 1."""

_TOGETHER = 3
"""The rarest words, which are looked for among the newest entries where each is too common."""

_PIECES = 12
"""How many identifiers that contain a piece are looked for in its place."""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """How a query is looked for: the terms in it, those that are left out as too common beside
    them, and the entries that are searched. `is_part`: only the newest of those that could be."""

    terms: tuple[Term, ...]
    left_out: tuple[Term, ...]
    extent: Extent
    is_part: bool = False


def plan_query(index: SearchIndex, typed: Iterable[Term], filters: Filters) -> SearchPlan:
    """How to look for terms."""
    extent = index.extent(filters)
    terms = [_spelt(index, term) for term in typed]
    if index.size() <= SMALL:
        return SearchPlan(tuple(terms), (), extent)
    costs = {term: index.estimate(term, extent) * _price(extent) for term in terms}
    chosen = set(_within(SCORED, costs))
    if any(costs[term] for term in chosen) or not any(costs.values()):
        return SearchPlan(
            tuple(term for term in terms if term in chosen),
            tuple(term for term in terms if term not in chosen),
            extent,
        )
    rarest = sorted(filter(costs.get, terms), key=lambda term: (costs[term], term.text))
    looked = rarest[:_TOGETHER]
    part = extent.newest(SCORED / sum(costs[term] for term in looked))
    return SearchPlan(tuple(looked), tuple(rarest[_TOGETHER:]), part, is_part=True)


def _price(extent: Extent) -> float:
    """What an entry within the extent costs: some are scored, the others passed over."""
    return extent.density + _PASSED * (1 - extent.density)


def _within(budget: float, costs: dict[Term, float]) -> Iterable[Term]:
    """The rarest terms, as many as there is time for."""
    for term in sorted(costs, key=lambda term: (costs[term], term.text)):
        budget -= costs[term]
        if budget < 0:
            return
        yield term


def _spelt(index: SearchIndex, term: Term) -> Term:
    """A term as it is found. What stands nowhere as it was typed is looked for as the beginning of
    a word, then as a piece of identifiers and paths."""
    if index.holds(term):
        return term
    begun = Term(f"{term.text}*", term.phrases, is_prefix=True)
    if not term.is_prefix and index.holds(begun):
        return begun
    if len(term.text) < 3 or not term.text.isalnum():
        return term
    names = index.identifiers_with(term.text, _PIECES)
    spelt = (tuple(word.lower() for word in WORD.findall(name)) for name in names)
    phrases = tuple(dict.fromkeys(filter(None, spelt)))
    return Term(f"…{term.text}…", phrases) if phrases else term
