"""The order of hits. Pure: figures in, figures out.

    score = weight * (sum over words of rarity * best + sum over periods of rarity) * recency

    best     how much a text is about a word: its own strength, or a share of that of a text near
             it in the same session, whichever is more: a reply is found by the words of what it
             answers. But what holds less by itself does not overtake a text that holds all words
    strength BM25 without its rarity: 0 to 2.2, by how often the word comes and how long the text is
    rarity   BM25's: how few of the texts that are searched hold the word
    period   a month or year that the query names, and that the text is of
    weight   by who said it: see `WEIGHTS`
    recency  decides between near ties, and nothing else

Constants were chosen on one half of LoCoMo's conversations and of a set of commits looked for by
their subjects, and reported on the other halves; docs/search.md has the figures.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from heapq import nlargest
from itertools import accumulate
from typing import NamedTuple

from foredeck.search.query import Period
from foredeck.store.clock import DAY_MS

COLUMN_WEIGHTS = (2.0, 1.0, 1.0, 2.0)
"""How much a word counts in what was said or asked for, in what came out, among the parts of
identifiers, and in a path."""

NEAR = (0.5, 0.25)
"""The share of its strength that a text lends to the next one, before and after it, and to the one
after that. On LoCoMo's odd half 0.4 to 0.6 and reaching further changed hit@10 by a point."""

WEIGHTS = {
    **{"user": 1.1, "assistant": 0.9},
    **dict.fromkeys(("thinking", "file", "older", "observation", "reflection"), 0.7),
}
"""By kind, 1 for all others. What a user said and what was done are looked for more often than the
same words in an answer; thinking, an observation and a file as it lies there (`older`: or lay)
repeat what is better found where it was said, read or written."""

PRIOR = 100
"""Rarity within a scope is counted as if the scope held so many texts more, in which each word is
as frequent as everywhere: in a short session counts alone would say little."""

RECENCY = 0.02
"""The share of its score by which the newest hit is raised."""

HALF_LIFE_MS = 14 * DAY_MS
"""The time in which that halves."""

SESSION_HITS, SESSION_SHARE = 5, 0.5
"""A session counts by so many of its best hits, each by this share of the one before."""

WEAK_SCORE, WEAK_WORDS = 0.6, 0.5
"""Shares of what the best has, below which a text is no hit: on LoCoMo's odd half none of the first
three that answer are lost, and of 40 questions to short memories half no wrong one is left."""

_SHARES = {sign * n: share for n, share in enumerate(NEAR, 1) for sign in (1, -1)}
"""By how much later an entry is than the one that lends."""


@dataclass(frozen=True, slots=True)
class FoundWord:
    """A term, and how strongly each text that holds it is about it, by entry."""

    text: str
    strengths: Mapping[int, float]
    rarity: float


class Candidate(NamedTuple):
    """An entry that may be a hit. `kind` is a key of `WEIGHTS` or anything else; `session` is None
    for what is no session's own. A tuple, since a search makes thousands, and these take time."""

    id: int
    kind: str
    session: int | None
    time_ms: int


class Ranked(NamedTuple):
    """An entry with its score and how that came about. `words`: those that it holds, `near`: those
    that only stand near it, `dated`: what the periods add, `held_back`: a factor
    below 1 where it comes after texts that hold more."""

    id: int
    score: float
    words: tuple[str, ...]
    near: tuple[str, ...]
    own: float
    lent: float
    dated: float
    weight: float
    recency: float
    session: int | None
    held_back: float = 1.0


@dataclass(frozen=True, slots=True)
class Ranking:
    """Texts, the best first, of equals the later entry; and the most that any other may score."""

    best: list[Ranked]
    beyond: float


def rarity(holders: float, texts: float) -> float:
    """What a word is worth that so many of the texts hold."""
    return math.log(1 + (texts - holders + 0.5) / (holders + 0.5))


def rarity_within(holders: int, texts: int, everywhere: float) -> float:
    """The same within a scope; `everywhere`: the share of all texts that hold the word."""
    return rarity(holders + PRIOR * everywhere, texts + PRIOR)


def rank(
    words: Sequence[FoundWord],
    scores: Mapping[int, float],
    periods: Sequence[Period],
    describe: Callable[[Set[int]], Mapping[int, Candidate]],
    bounds: Sequence[tuple[float, int]],
    most: int,
) -> Ranking:
    """The best of the `most` texts that can score best by their words.

    `scores`: `own_scores` of the words; `bounds`: their `highest_scores`. `describe` gives those of
    some entries that may be hits; it may give more.
    """
    best = [id for _, id in bounds[:most]]
    near = {id + place for id in best for place in _SHARES if id + place in scores}
    latest = max(scores, default=0)
    known = describe({latest, *near, *best})
    candidates = [known[id] for id in best if id in known]
    dated = _dated(periods, candidates)
    newest = known[latest].time_ms if latest in known else 0
    ranked = []
    for one in candidates:
        total, held, lent = _evidence(one, words, _lenders(one, known, near))
        if not total:  # what it is near is another session's
            continue
        weight = WEIGHTS.get(one.kind, 1.0)
        recency = 1 + RECENCY * math.exp2(min(0, one.time_ms - newest) / HALF_LIFE_MS)
        score = weight * (total + dated[one.id]) * recency
        own = scores.get(one.id, 0.0)
        ranked.append(
            Ranked(
                *(one.id, score, held, lent, own, total - own),
                *(dated[one.id], weight, recency, one.session),
            )
        )
    ranked = _behind_complete(ranked, len(words))
    beyond = bounds[most][0] if len(bounds) > most else 0.0
    return Ranking(ranked, beyond * max(WEIGHTS.values()) * (1 + RECENCY))


def is_weak(one: Ranked, best: Ranked) -> bool:
    """Whether a text is hardly about what was asked for, beside the best: it scores far less, and
    has few of the words that the best has, in it or near it."""
    few = len(one.words) + len(one.near) <= WEAK_WORDS * (len(best.words) + len(best.near))
    return few and one.score < WEAK_SCORE * best.score


def _behind_complete(ranked: Sequence[Ranked], words: int) -> list[Ranked]:
    """In order, with what lacks a word behind what holds all."""
    # Where texts hold all words, what holds none is no hit, and what lacks one comes after those of
    # them that have as much by themselves.
    complete = sorted((one for one in ranked if len(one.words) == words), key=lambda one: -one.own)
    if not complete:
        return sorted(ranked, key=lambda one: (-one.score, -one.id))
    own = [-one.own for one in complete]
    least = list(accumulate((one.score for one in complete), min))
    behind: list[tuple[float, float, Ranked]] = []
    for one in ranked:
        above = bisect_right(own, -one.own) if len(one.words) < words else 0
        score = min(one.score, least[above - 1]) if above else one.score
        if one.words:
            if score < one.score:
                one = one._replace(score=score, held_back=score / one.score)
            behind.append((-score, above, one))
    behind.sort(
        key=lambda pair: (pair[0], pair[1] > 0, -pair[2].score / pair[2].held_back, -pair[2].id)
    )
    return [one for *_, one in behind]


def by_session(ranked: Iterable[Ranked]) -> dict[int | None, list[Ranked]]:
    """The hits of each session, in order; the session that answers best comes first. What is of
    none (None) counts by its best hit alone."""
    sessions: dict[int | None, list[Ranked]] = defaultdict(list)
    for one in ranked:
        sessions[one.session].append(one)
    return dict(sorted(sessions.items(), key=lambda pair: -_session_score(*pair)))


def _session_score(session: int | None, hits: Sequence[Ranked]) -> float:
    count = 1 if session is None else SESSION_HITS
    best = nlargest(count, (hit.score / hit.held_back for hit in hits))
    return sum(score * SESSION_SHARE**n for n, score in enumerate(best))


def own_scores(words: Sequence[FoundWord]) -> dict[int, float]:
    """What each text would score by itself."""
    scores: dict[int, float] = defaultdict(float)
    for word in words:
        for id, strength in word.strengths.items():
            scores[id] += word.rarity * strength
    return scores


def highest_scores(
    words: Sequence[FoundWord], scores: dict[int, float], most: int
) -> list[tuple[float, int]]:
    """The most that each entry can score by its words, and the entry, in order: as if all that is
    near were of the same session. Of entries that hold none only those near the `most` best are
    considered. Gives the `most` that can score highest and the next one, and all that equal it."""
    # A search spends a third of its time here.
    least = _least_of_best(scores.values(), most)
    lending = [id for id, score in scores.items() if score >= least]
    bounds: dict[int, float] = {}
    for place in _SHARES:
        bounds.update(dict.fromkeys([id + place for id in lending], 0.0))
    bounds.update(scores)
    for word in words:
        own = word.strengths
        lent: dict[int, float] = {}
        for place, share in _SHARES.items():
            for id, strength in own.items():
                other = id + place
                if other in bounds:
                    offered = share * strength
                    if offered > own.get(other, 0.0) and offered > lent.get(other, 0.0):
                        lent[other] = offered
        for id, strength in lent.items():
            bounds[id] += word.rarity * (strength - own.get(id, 0.0))
    least = _least_of_best(bounds.values(), most + 1)
    best = [(bound, id) for id, bound in bounds.items() if bound >= least]
    return sorted(best, reverse=True)


def _least_of_best(figures: Collection[float], most: int) -> float:
    """The least of the `most` highest: to sort figures is much faster than to sort pairs."""
    return sorted(figures, reverse=True)[most - 1] if len(figures) >= most else -math.inf


def _lenders(
    candidate: Candidate, known: Mapping[int, Candidate], near: Collection[int]
) -> list[tuple[int, float]]:
    """The texts near a candidate that hold a word and are of its session, with their shares."""
    session = candidate.session
    if session is None:
        return []
    return [
        (id, share)
        for place, share in _SHARES.items()
        if (id := candidate.id + place) in near and id in known and known[id].session == session
    ]


def _evidence(
    candidate: Candidate, words: Sequence[FoundWord], lenders: Sequence[tuple[int, float]]
) -> tuple[float, tuple[str, ...], tuple[str, ...]]:
    """What the words add up to for a candidate; those that it holds; those that are only near."""
    total, held, lent = 0.0, [], []
    for word in words:
        strength = word.strengths.get
        best = own = strength(candidate.id, 0.0)
        for id, share in lenders:
            if (offered := share * strength(id, 0.0)) > best:
                best = offered
        if own:
            held.append(word.text)
        elif best:
            lent.append(word.text)
        total += word.rarity * best
    return total, tuple(held), tuple(lent)


def _dated(periods: Iterable[Period], candidates: Sequence[Candidate]) -> dict[int, float]:
    """What it adds to each candidate that it is of the periods: the more, the fewer are."""
    added: dict[int, float] = defaultdict(float)
    for period in periods:
        within = [one.id for one in candidates if period.includes(one.time_ms)]
        for id in within:
            added[id] += rarity(len(within), len(candidates))
    return added
