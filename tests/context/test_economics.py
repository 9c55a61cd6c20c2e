"""When a rebase pays: prices, carrying cost against rewrite cost, and the guard."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.config import RebaseSection
from foredeck.context.rebase import (
    CandidateMessage,
    Prices,
    best_rebase,
    calls_until,
    prices_of,
)
from foredeck.model.call_values import CHARS_PER_TOKEN, BranchCost, Decision
from foredeck.model.own_tools import DEFAULT_FACILITIES, definition_chars

RICH = BranchCost(baseline=1e9, actual=0.0)


def due(index: int, saving: float, rent: float, suffix: float) -> CandidateMessage:
    return CandidateMessage(index, saving, rent, suffix)


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (
            {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75},
            Prices(0.1, 1.25, known=True),
        ),
        ({"input": 2, "cacheRead": 0.5, "cacheWrite": 0}, Prices(0.25, 1.0, known=True)),
        ({"input": 0, "cacheRead": 0, "cacheWrite": 0}, Prices()),
        ({"input": 1, "cacheRead": 0, "cacheWrite": 0}, Prices(1, 1, known=True, cached=False)),
        ({"input": 1, "cacheRead": 1, "cacheWrite": 1}, Prices(1, 1, known=True, cached=False)),
        ({"input": 1, "cacheRead": 0, "cacheWrite": 2}, Prices()),
        ({"input": "cheap"}, Prices()),
        (None, Prices()),
    ],
)
def test_prices_are_relative_to_input(cost: dict[str, float] | None, expected: Prices) -> None:
    found = prices_of(cost)
    assert (found.known, found.cached) == (expected.known, expected.cached)
    assert (found.read, found.write) == pytest.approx((expected.read, expected.write))


def test_a_rebase_pays_when_the_rent_has_reached_the_premium() -> None:
    premium = 1.15 * 900
    short = due(5, 100, premium - 1, 1000)
    enough = due(5, 100, premium, 1000)
    assert best_rebase([short], Prices(), RebaseSection(), RICH) is None
    offer = best_rebase([enough], Prices(), RebaseSection(), RICH)
    assert offer is not None
    assert (offer.index, offer.rewrite_cost) == (5, pytest.approx(premium))
    explained = Decision("rebase", "pays", 5, carrying_cost=1035, rewrite_cost=1035)
    assert offer.explain(Decision("rebase", "pays", 5)) == explained


def test_the_earliest_position_that_pays_is_taken() -> None:
    dues = [due(2, 10, 0, 9000), due(5, 100, 3000, 2000), due(9, 100, 3000, 300)]
    offer = best_rebase(dues, Prices(), RebaseSection(), RICH)
    assert offer is not None
    assert (offer.index, offer.saving) == (5, 200)


def test_the_guard_keeps_a_session_from_falling_behind() -> None:
    dues = [due(5, 100, 3000, 1100)]
    premium = 1150
    at_edge = BranchCost(baseline=100_000, actual=105_000 - premium)
    assert best_rebase(dues, Prices(), RebaseSection(), at_edge) is not None
    over = BranchCost(baseline=100_000, actual=105_001 - premium)
    assert best_rebase(dues, Prices(), RebaseSection(), over) is None


def test_reasoning_that_is_lost_counts_with_what_is_written() -> None:
    message = CandidateMessage(5, 100, 2000, 1000, reasoning=200)
    assert best_rebase([message], Prices(output=5), RebaseSection(), RICH) is None
    assert best_rebase([message], Prices(output=5), RebaseSection(reasoning=0.5), RICH)
    assert best_rebase([message], Prices(output=4), RebaseSection(), RICH)


def test_without_a_premium_on_writing_it_always_pays() -> None:
    flat = prices_of({"input": 1, "cacheRead": 1, "cacheWrite": 1})
    assert best_rebase([due(5, 1, 0, 9999)], flat, RebaseSection(), BranchCost(1, 1)) is not None


@given(
    st.lists(
        st.tuples(st.floats(1, 1e4), st.floats(0, 1e4), st.floats(0, 1e5)), min_size=1, max_size=9
    ),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
)
def test_what_is_offered_is_within_the_rules(
    raw: list[tuple[float, float, float]], plain: float, ours: float
) -> None:
    suffix, dues = 0.0, []
    for index, (saving, rent, more) in enumerate(reversed(raw)):
        suffix += saving + more
        dues.append(due(100 - index, saving, rent, suffix))
    dues.reverse()
    ledger = BranchCost(plain, ours)
    offer = best_rebase(dues, Prices(), RebaseSection(), ledger)
    if offer is None:
        return
    taken = [d for d in dues if d.index >= offer.index]
    assert offer.carrying_cost == pytest.approx(sum(d.carrying_cost for d in taken))
    assert offer.carrying_cost >= offer.rewrite_cost - 1e-6
    assert (
        not offer.rewrite_cost
        or ledger.actual + offer.rewrite_cost <= 1.02 * ledger.baseline + 1e-6
    )


@given(
    st.lists(
        st.tuples(
            st.floats(1, 5000),
            st.floats(0, 1),
            st.sampled_from(["warm"] * 5 + ["cold"]),
        ),
        min_size=1,
        max_size=60,
    )
)
def test_a_session_that_ends_at_any_call_has_cost_no_more_than_the_guard_and_our_tools(
    steps: list[tuple[float, float, str]],
) -> None:
    """Messages of any size, any share of which may go one call later; the cache may expire."""
    prices, terms, tools = (
        Prices(),
        RebaseSection(),
        definition_chars(*DEFAULT_FACILITIES) / CHARS_PER_TOKEN,
    )
    host: list[float] = []
    ours: list[float] = []
    due_since: dict[int, int] = {}
    savings: list[float] = []
    ledger, added = BranchCost(), 0.0
    for call, (size, share, state) in enumerate(steps):
        warm, sent, cached = state == "warm" and call > 0, list(ours), sum(ours) + tools
        host.append(size)
        ours.append(size)
        savings.append(size * share)
        due_since |= {call - 1: call} if call else {}
        dues = [
            CandidateMessage(
                n, savings[n], prices.read * savings[n] * (call - since), sum(sent[n:])
            )
            for n, since in due_since.items()
        ]
        plain = prices.cost(sum(host[:-1]), size) if warm else prices.cost(0, sum(host))
        as_is = prices.cost(cached, size) if warm else prices.cost(0, sum(ours) + tools)
        offer = best_rebase(dues, prices, terms, ledger.after(plain, as_is))
        first = 0 if not warm else offer.index if offer else len(ours)
        for n in [n for n in due_since if n >= first]:
            ours[n] -= savings[n]
            due_since[n] = len(steps)
            savings[n] = 0.0
        kept = sum(ours[:first]) + tools if warm else 0.0
        bill = prices.cost(kept, sum(ours) + tools - kept) if first < len(ours) else as_is
        ledger = ledger.after(plain, bill)
        added += prices.cost(tools, 0) if warm else prices.cost(0, tools)
        assert ledger.actual <= (1 + terms.guard) * ledger.baseline + added + 1


@given(
    st.lists(
        st.tuples(st.floats(1, 5000), st.floats(0, 500), st.floats(0, 5000)), min_size=1, max_size=6
    )
)
def test_a_rebase_pays_at_the_call_that_was_foreseen_and_not_before(
    pieces: list[tuple[float, float, float]],
) -> None:
    prices, terms, rich = Prices(), RebaseSection(guard=10), BranchCost(1e9, 0.0)

    def after(calls: int) -> list[CandidateMessage]:
        found: list[CandidateMessage] = []
        suffix = 0.0
        for index, (saving, rent, step) in enumerate(reversed(pieces)):
            suffix += step + saving
            grown = rent + calls * prices.read * saving
            found.insert(0, CandidateMessage(len(pieces) - index, saving, grown, suffix))
        return found

    wait = calls_until(after(0), prices, terms)
    assert wait is not None
    assert best_rebase(after(wait), prices, terms, rich) is not None
    if wait > 1:
        assert best_rebase(after(wait - 1), prices, terms, rich) is None
