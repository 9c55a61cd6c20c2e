"""How a score comes about, apart from any database."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

import pytest

from foredeck.search.query import Period
from foredeck.search.ranking import (
    NEAR,
    Candidate,
    FoundWord,
    Ranked,
    by_session,
    highest_scores,
    own_scores,
    rank,
    rarity,
    rarity_within,
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


def test_each_word_counts_by_the_better_of_its_own_strength_and_a_share_of_a_neighbours() -> None:
    words = {"fox": {1: 1.0}, "owl": {2: 1.0, 3: 0.2}, "elk": {9: 1.0}}
    found = {one.id: one for one in ranked(words, *(text(id) for id in (1, 2, 3, 9)))}
    assert found[2].own == 1.0
    assert found[2].lent == NEAR[0]
    assert (found[2].words, found[2].near) == (("owl",), ("fox",))
    assert found[3].own + found[3].lent == NEAR[0] + NEAR[1]
    assert found[9].lent == 0


def test_a_period_adds_its_rarity_among_the_texts() -> None:
    february, march = 1_770_000_000_000, 1_773_000_000_000
    candidates = [text(id, session=id, time_ms=february) for id in (1, 2)]
    candidates.append(text(3, session=3, time_ms=march))
    order = ranked({"fox": {1: 1.0, 2: 1.0, 3: 1.0}}, *candidates, periods=[Period(month=3)])
    assert [(one.id, one.dated) for one in order[:2]] == [(3, rarity(1, 3)), (2, 0)]


def test_a_short_scope_takes_over_how_rare_words_are_elsewhere() -> None:
    assert rarity_within(1, 5, 0.5) < rarity_within(1, 5, 0.001)
    assert rarity_within(0, 0, 0.5) == pytest.approx(rarity(50, 100))


def test_a_session_with_several_hits_comes_before_one_with_a_better_one() -> None:
    words = {"fox": {1: 1.0, 10: 0.8, 20: 0.8}}
    order = ranked(words, text(1, session=1), text(10, session=2), text(20, session=2))
    assert [one.id for one in order] == [1, 20, 10]
    assert {s: [hit.id for hit in hits] for s, hits in by_session(order).items()} == {
        2: [20, 10],
        1: [1],
    }


@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_out_of_the_highest_scores_could_score_no_more(seed: int) -> None:
    chance = random.Random(seed)
    words = [
        FoundWord(
            text, {chance.randrange(90): chance.choice((0.5, 1.0, 2.0)) for _ in range(25)}, n
        )
        for n, text in enumerate(("fox", "owl", "elk"), 1)
    ]
    scores = own_scores(words)
    every = {id: bound for bound, id in highest_scores(words, scores, 1_000)}
    for id, bound in every.items():
        shares = {id: 1.0, id + 1: NEAR[0], id - 1: NEAR[0], id + 2: NEAR[1], id - 2: NEAR[1]}
        exact = 0.0
        for word in words:
            near = [share * word.strengths.get(other, 0) for other, share in shares.items()]
            exact += word.rarity * max(near)
        assert bound == pytest.approx(exact)
    best = highest_scores(words, scores, 10)
    assert best == sorted(best, reverse=True)
    assert len(best) > 10
    given = {id for _, id in best}
    left_out = [bound for id, bound in every.items() if id not in given and id in scores]
    assert left_out
    assert max(left_out) < best[-1][0]
