"""The order of hits. Pure: figures in, figures out.

    score = weight * (sum over words of rarity * best + sum over periods of rarity) * recency

    best     how much a text is about a word: its own strength, or a share of that of a text near
             it in the same session, since a reply is found by the words of what it answers
    strength BM25 without its rarity: 0 to 2.2
    rarity   BM25's: how few of the texts that are searched hold the word
    period   a month or year that the query names, and that the text is of
    weight   by who said it: see `WEIGHTS`
    recency  decides between near ties, and nothing else

Constants were chosen on one half of the data and are reported on the other (docs/search.md).
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
"""Weight of a word in what was said, output, parts of identifiers, and path."""

NEAR = (0.5, 0.25)
"""Share of its strength that a text lends to neighbours at distance one and two."""

WEIGHTS = {
    **{"user": 1.1, "assistant": 0.9},
    **dict.fromkeys(("thinking", "file", "older", "observation", "reflection"), 0.7),
}
"""By kind; 1 for others. User text and actions are sought more often than answers."""

PRIOR = 100
"""Virtual texts: counts of a short session alone say little."""

RECENCY = 0.02
"""Bonus share of the newest hit."""

HALF_LIFE_MS = 14 * DAY_MS
"""Half-life of the bonus."""

SESSION_HITS, SESSION_SHARE = 5, 0.5
"""Best hits that count for a session, each by this share of the previous."""

WEAK_SCORE, WEAK_WORDS = 0.6, 0.5
"""Below these shares of the best a text is no hit."""

_SHARES = {sign * n: share for n, share in enumerate(NEAR, 1) for sign in (1, -1)}
"""By distance from the lender."""


@dataclass(frozen=True, slots=True)
class FoundWord:
    """A term, and its strength by entry."""

    text: str
    strengths: Mapping[int, float]
    rarity: float


class Candidate(NamedTuple):
    """A possible hit, as a tuple for speed."""

    id: int
    kind: str
    session: int | None
    time_ms: int


class Ranked(NamedTuple):
    """An entry with its score and reasons; `held_back` below 1 behind texts with more words."""

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
    best: list[Ranked]
    beyond: float


def rarity(holders: float, texts: float) -> float:
    """Worth of a word in so many of the texts."""
    return math.log(1 + (texts - holders + 0.5) / (holders + 0.5))


def rarity_within(holders: int, texts: int, everywhere: float) -> float:
    return rarity(holders + PRIOR * everywhere, texts + PRIOR)


def rank(
    words: Sequence[FoundWord],
    scores: Mapping[int, float],
    periods: Sequence[Period],
    describe: Callable[[Set[int]], Mapping[int, Candidate]],
    bounds: Sequence[tuple[float, int]],
    most: int,
) -> Ranking:
    """The best of the `most` texts.

    `scores`: `own_scores`; `bounds`: `highest_scores`.
    """
    best = [id for _, id in bounds[:most]]
    near = {id + place for id in best for place in _SHARES if id + place in scores}
    latest = max(scores, default=0)
    described = describe({latest, *near, *best})
    candidates = [described[id] for id in best if id in described]
    dated = _dated(periods, candidates)
    newest = described[latest].time_ms if latest in described else 0
    ranked = []
    for one in candidates:
        total, own_words, lent = _evidence(one, words, _lenders(one, described, near))
        if not total:  # what it is near is another session's
            continue
        weight = WEIGHTS.get(one.kind, 1.0)
        recency = 1 + RECENCY * math.exp2(min(0, one.time_ms - newest) / HALF_LIFE_MS)
        score = weight * (total + dated[one.id]) * recency
        own = scores.get(one.id, 0.0)
        ranked.append(
            Ranked(
                *(one.id, score, own_words, lent, own, total - own),
                *(dated[one.id], weight, recency, one.session),
            )
        )
    ranked = _behind_complete(ranked, len(words))
    beyond = bounds[most][0] if len(bounds) > most else 0.0
    return Ranking(ranked, beyond * max(WEIGHTS.values()) * (1 + RECENCY))


def is_weak(one: Ranked, best: Ranked) -> bool:
    """Whether a text is hardly relevant beside the best: far lower score, and few of its words."""
    few = len(one.words) + len(one.near) <= WEAK_WORDS * (len(best.words) + len(best.near))
    return few and one.score < WEAK_SCORE * best.score


def _behind_complete(ranked: Sequence[Ranked], words: int) -> list[Ranked]:
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
    """The best session first; without a session only the best hit counts."""
    sessions: dict[int | None, list[Ranked]] = defaultdict(list)
    for one in ranked:
        sessions[one.session].append(one)
    return dict(sorted(sessions.items(), key=lambda pair: -_session_score(*pair)))


def _session_score(session: int | None, hits: Sequence[Ranked]) -> float:
    count = 1 if session is None else SESSION_HITS
    best = nlargest(count, (hit.score / hit.held_back for hit in hits))
    return sum(score * SESSION_SHARE**n for n, score in enumerate(best))


def own_scores(words: Sequence[FoundWord]) -> dict[int, float]:
    """Each text's score by itself."""
    scores: dict[int, float] = defaultdict(float)
    for word in words:
        for id, strength in word.strengths.items():
            scores[id] += word.rarity * strength
    return scores


def highest_scores(
    words: Sequence[FoundWord], scores: dict[int, float], most: int
) -> list[tuple[float, int]]:
    """Bounds of each entry's score, as if neighbours shared its session; the `most` highest, the
    next, and its equals."""
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
    return sorted(figures, reverse=True)[most - 1] if len(figures) >= most else -math.inf


def _lenders(
    candidate: Candidate, known: Mapping[int, Candidate], near: Collection[int]
) -> list[tuple[int, float]]:
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
    """A candidate's sum over words, its own words, and words merely near."""
    total, own_words, lent = 0.0, [], []
    for word in words:
        strength = word.strengths.get
        best = own = strength(candidate.id, 0.0)
        for id, share in lenders:
            if (offered := share * strength(id, 0.0)) > best:
                best = offered
        if own:
            own_words.append(word.text)
        elif best:
            lent.append(word.text)
        total += word.rarity * best
    return total, tuple(own_words), tuple(lent)


def _dated(periods: Iterable[Period], candidates: Sequence[Candidate]) -> dict[int, float]:
    """Bonus of each candidate for its periods; higher if fewer match."""
    added: dict[int, float] = defaultdict(float)
    for period in periods:
        within = [one.id for one in candidates if period.includes(one.time_ms)]
        for id in within:
            added[id] += rarity(len(within), len(candidates))
    return added
