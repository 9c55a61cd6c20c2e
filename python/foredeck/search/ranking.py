"""The order of hits. Pure: figures in, figures out.

A hit counts by BM25 over its columns, weighed by what kind of text it is: that something was done
(a change, a command) says more than that it was looked at. Other hits of its session add to it,
above all those near it: what was asked for may be spread over a question, a change and its test.
Recency decides near ties and nothing else.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest

from foredeck.store.clock import DAY_MS

COLUMN_WEIGHTS = (2.0, 1.0, 1.0, 2.0)
"""BM25's weights of what was said or asked for, of what came out, of the parts of identifiers, and
of paths."""

KIND_WEIGHTS = {
    "edit": 1.2,
    "write": 1.2,
    "multiedit": 1.2,
    "apply_patch": 1.2,
    "read": 0.7,
    "grep": 0.7,
    "find": 0.7,
    "glob": 0.7,
    "ls": 0.7,
    "thinking": 0.8,
    "file": 0.9,
    "older": 0.6,
    "observation": 0.7,
}
"""By the tool, the role or the type of a text, 1 for all others: what an observation is about is
better found itself; `older`: a file's version that is
not its newest."""

NEAR = 15
"""Within how many entries another hit of the session is near: a few exchanges, in which one thing
is asked for, done and tried."""

NEAR_SHARES = (0.5, 0.4, 0.3, 0.2, 0.1)
"""How much of its score each of the best other hits that are near adds."""

SESSION_SHARE = 0.25
"""How much of its score each of the three best other hits of the session adds, near or not."""

_SESSION_BEST = 3

RECENCY = 0.02
"""The share of its score by which the newest hit is raised."""

HALF_LIFE_MS = 14 * DAY_MS
"""The time in which that halves."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry that matches. `kind` is a key of `KIND_WEIGHTS` or anything else; `session` is None
    for what is no session's own."""

    id: int
    bm25: float
    kind: str
    session: int | None
    time_ms: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """An entry with its score and how that came about: `bm25 * weight`, what others of the
    session add (`related`), and the factor of `recency`."""

    id: int
    score: float
    bm25: float
    weight: float
    related: float
    recency: float


@dataclass(frozen=True, slots=True)
class _SessionHits:
    """The hits of one session: ids in order, their scores, and the best with their ids."""

    ids: list[int]
    scores: list[float]
    best: list[tuple[float, int]]


def rank(candidates: Sequence[Candidate]) -> list[Ranked]:
    """The best first; of equals the later entry."""
    newest = max((candidate.time_ms for candidate in candidates), default=0)
    sessions = _by_session(candidates)
    ranked = [_ranked(candidate, sessions, newest) for candidate in candidates]
    return sorted(ranked, key=lambda one: (-one.score, -one.id))


def _ranked(candidate: Candidate, sessions: dict[int, _SessionHits], newest: int) -> Ranked:
    weight = KIND_WEIGHTS.get(candidate.kind, 1.0)
    related = 0.0
    if candidate.session is not None:
        related = _related(candidate.id, sessions[candidate.session])
    recency = 1 + RECENCY * math.exp2((candidate.time_ms - newest) / HALF_LIFE_MS)
    score = (candidate.bm25 * weight + related) * recency
    return Ranked(candidate.id, score, candidate.bm25, weight, related, recency)


def _related(id: int, session: _SessionHits) -> float:
    """What the other hits of its session add to a hit."""
    first = bisect_left(session.ids, id - NEAR)
    here = bisect_left(session.ids, id)
    end = bisect_right(session.ids, id + NEAR)
    near = sorted(session.scores[first:here] + session.scores[here + 1 : end], reverse=True)
    others = [score for score, other in session.best if other != id][:_SESSION_BEST]
    nearby = sum(share * score for share, score in zip(NEAR_SHARES, near, strict=False))
    return nearby + SESSION_SHARE * sum(others)


def _by_session(candidates: Iterable[Candidate]) -> dict[int, _SessionHits]:
    found: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for candidate in candidates:
        if candidate.session is not None:
            score = candidate.bm25 * KIND_WEIGHTS.get(candidate.kind, 1.0)
            found[candidate.session].append((candidate.id, score))
    sessions = {}
    for session, hits in found.items():
        hits.sort()
        best = nlargest(_SESSION_BEST + 1, ((score, id) for id, score in hits))
        ids, scores = [id for id, _ in hits], [score for _, score in hits]
        sessions[session] = _SessionHits(ids, scores, best)
    return sessions
