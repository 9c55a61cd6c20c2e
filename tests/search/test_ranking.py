"""How a score comes about, apart from any database."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from foredeck.search.query import Period
from foredeck.search.ranking import (
    Candidate,
    FoundWord,
    Ranked,
    by_session,
    highest_scores,
    own_scores,
    rank,
)


def ranked(
    words: Mapping[str, Mapping[int, float]],
    *candidates: Candidate,
    periods: Collection[Period] = (),
) -> list[Ranked]:
    """The order where each word is worth 1."""
    found = [FoundWord(text, strengths, 1.0) for text, strengths in words.items()]
    known = {one.id: one for one in candidates}

    def describe(ids: Collection[int]) -> dict[int, Candidate]:
        return {id: known[id] for id in ids if id in known}

    scores = own_scores(found)
    bounds = highest_scores(found, scores, 10)
    return rank(found, scores, list(periods), describe, bounds, 10).best


def text(id: int, kind: str = "bash", session: int | None = 1, time_ms: int = 0) -> Candidate:
    return Candidate(id, kind, session, time_ms)


def test_a_session_with_several_hits_comes_before_one_with_a_better_one() -> None:
    words = {"fox": {1: 1.0, 10: 0.8, 20: 0.8}}
    order = ranked(words, text(1, session=1), text(10, session=2), text(20, session=2))
    assert [one.id for one in order] == [1, 20, 10]
    assert {s: [hit.id for hit in hits] for s, hits in by_session(order).items()} == {
        2: [20, 10],
        1: [1],
    }
