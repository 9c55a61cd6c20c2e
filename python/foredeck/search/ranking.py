"""The order of hits. Pure: figures in, figures out.

A hit counts by BM25 over its columns, weighed by what kind of text it is: that something was done
(a change, a command) says more than that it was looked at. Other hits of its session add to it:
where several messages speak of what is asked for, each of them is more likely to be meant.
Recency decides near ties and nothing else.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
}
"""By the tool, the role or the type of a text, 1 for all others; `older`: a file's version that is
not its newest."""

RELATED = (0.5, 0.25)
"""How much of its score each of the best other hits of the session adds."""

RECENCY = 0.02
"""The share of its score by which the newest hit is raised."""

HALF_LIFE_MS = 14 * 86_400_000
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


def rank(candidates: Sequence[Candidate]) -> list[Ranked]:
    """The best first; of equals the later entry."""
    newest = max((candidate.time_ms for candidate in candidates), default=0)
    best = _best_of_sessions(candidates)
    ranked = [_ranked(candidate, best, newest) for candidate in candidates]
    return sorted(ranked, key=lambda one: (-one.score, -one.id))


def _ranked(candidate: Candidate, best: dict[int, list[tuple[float, int]]], newest: int) -> Ranked:
    weight = KIND_WEIGHTS.get(candidate.kind, 1.0)
    others = [] if candidate.session is None else best[candidate.session]
    added = [score for score, id in others if id != candidate.id]
    related = sum(share * score for share, score in zip(RELATED, added, strict=False))
    recency = 1 + RECENCY * math.exp2((candidate.time_ms - newest) / HALF_LIFE_MS)
    score = (candidate.bm25 * weight + related) * recency
    return Ranked(candidate.id, score, candidate.bm25, weight, related, recency)


def _best_of_sessions(candidates: Iterable[Candidate]) -> dict[int, list[tuple[float, int]]]:
    """The best hits of each session, one more than are added: a hit does not add to itself."""
    found: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for candidate in candidates:
        if candidate.session is not None:
            score = candidate.bm25 * KIND_WEIGHTS.get(candidate.kind, 1.0)
            found[candidate.session].append((score, candidate.id))
    return {
        session: sorted(scores, reverse=True)[: len(RELATED) + 1]
        for session, scores in found.items()
    }
