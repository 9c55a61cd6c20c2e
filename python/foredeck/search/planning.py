"""Which of a query's words are looked for, so that the time of a search is bounded.

To score an entry takes FTS5 twenty times as long as to pass over it, and a word that a large part
of all entries hold says little. So as many words are looked for as there is time to score, the
rarest first; where even the rarest is too common, entries are asked for that hold several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

from foredeck.search.index import Filters, SearchIndex, SearchPlan
from foredeck.search.query import Term, any_of, is_name, parse_query
from foredeck.search.tokens import WORD

SMALL = 20_000
"""In an index with this many entries all words are looked for."""

SCORED = 8_000
"""Entries that are scored at most, by estimate: about a hundredth of a second."""

NARROWED = 8
"""How many times as many may match where a filter turns most down before they are scored."""

COUNTED_THROUGH = 200_000
"""Entries that are passed over at most, each as often as it holds one of the words. FTS5 counts
all that hold a word before it scores one: words whose counts sum up to more are not scored."""

_TOGETHER = 5
"""The rarest words, of which entries must hold several."""

_PIECES = 12
"""How many identifiers that contain a piece are looked for in its place."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """Terms to look for; entries must hold `several` of them."""

    terms: Sequence[Term]
    several: int = 1

    @property
    def match(self) -> str:
        if self.several == 1:
            return any_of(self.terms)
        groups = combinations(self.terms, self.several)
        return " OR ".join("(" + " AND ".join(t.match for t in group) + ")" for group in groups)


def plans_for(index: SearchIndex, query: str, filters: Filters) -> list[SearchPlan]:
    """How to look for a query, one plan after the other for as long as hits are wanted.

    A name alone is looked for whole, and only then by its parts: somebody who knows the name wants
    the text that has it, and there are far more with its parts. In a query of several words parts
    say what the whole is about.
    """
    terms = parse_query(query)
    whole = terms[:1] if is_name(query) and len(terms) > 1 and index.holds(terms[0]) else []
    plans = (plan_query(index, tier, filters) for tier in (whole, terms))
    return [plan for plan in plans if plan is not None]


def plan_query(index: SearchIndex, terms: Iterable[Term], filters: Filters) -> SearchPlan | None:
    """How to look for the terms; None where nothing holds any of them.

    What stands nowhere as it was typed is looked for as the beginning of a word, then as a piece
    of an identifier or path.
    """
    counts = {
        spelt: index.estimate(spelt)
        for term in dict.fromkeys(terms)
        for spelt in _spelt(index, term)
    }
    if not counts:
        return None
    budget = SCORED * (1 if filters == Filters() else NARROWED)
    size = index.size()
    if size <= max(SMALL, budget):
        return _plan(counts, _Choice(list(counts)))
    chosen = _within(counts, budget)
    if chosen:
        return _plan(counts, _Choice([term for term in counts if term in chosen]))
    return _of_common(counts, size, budget)


def _plan(counts: Mapping[Term, int], choice: _Choice, oldest: int = 0) -> SearchPlan:
    scored = sum(counts[term] for term in choice.terms) <= COUNTED_THROUGH
    left_out = tuple(term for term in counts if term not in choice.terms)
    return SearchPlan(choice.match, tuple(choice.terms), left_out, oldest, scored)


def _within(counts: Mapping[Term, int], budget: int) -> set[Term]:
    """The rarest terms, as many as there is time for."""
    chosen: set[Term] = set()
    for term in sorted(counts, key=counts.__getitem__):
        budget -= counts[term]
        if budget < 0:
            break
        chosen.add(term)
    return chosen


def _of_common(counts: Mapping[Term, int], size: int, budget: int) -> SearchPlan:
    """Where every word is common: those entries that hold as many of the rarest as it takes, of
    the newest where even those are too many."""
    phrases = [term.words for term in counts if len(term.words) > 1]
    parts = {term for term in counts if any(set(term.words) < set(words) for words in phrases)}
    alone = counts.keys() - parts  # an entry with a phrase holds its words as well
    rarest = sorted(sorted(alone, key=lambda term: term.match), key=counts.__getitem__)[:_TOGETHER]
    shares = [min(1.0, counts[term] / size) for term in rarest]
    share = min(1.0, COUNTED_THROUGH / (size * sum(shares)))
    for several in range(2, len(rarest) + 1):
        if share * size * _share_with(shares, several) <= budget:
            return _plan(counts, _Choice(rarest, several), oldest=int(size * (1 - share)))
    share = min(share, budget / (size * max(prod(shares), budget / size)))
    return _plan(counts, _Choice(rarest, len(rarest)), oldest=int(size * (1 - share)))


def _share_with(shares: Sequence[float], several: int) -> float:
    """At most this share of entries holds this many of the words, if these come independently."""
    groups = combinations(shares, several)
    return min(1.0, sum(prod(group) for group in groups))


def _spelt(index: SearchIndex, term: Term) -> list[Term]:
    if term.prefix or index.holds(term):
        return [term]
    begun = replace(term, prefix=True)
    if index.holds(begun):
        return [begun]
    if len(term.words) > 1 or len(term.words[0]) < 3:
        return []
    names = index.identifiers_with(term.words[0], _PIECES)
    spelt = (tuple(word.lower() for word in WORD.findall(name)) for name in names)
    return [Term(words) for words in dict.fromkeys(spelt) if words]
