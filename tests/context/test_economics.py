"""When a rebase pays: prices, carrying cost against rewrite cost, and the guard."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.config import RebaseSection
from foredeck.context.rebase import CandidateMessage, Prices, best_rebase, prices_of
from foredeck.model.call_values import CHARS_PER_TOKEN, BranchCost
from foredeck.model.own_tools import DEFAULT_FACILITIES, definition_chars

RICH = BranchCost(baseline=1e9, actual=0.0)


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


def test_reasoning_that_is_lost_counts_with_what_is_written() -> None:
    message = CandidateMessage(5, 100, 2000, 1000, reasoning=200)
    assert best_rebase([message], Prices(output=5), RebaseSection(), RICH) is None
    assert best_rebase([message], Prices(output=5), RebaseSection(reasoning=0.5), RICH)
    assert best_rebase([message], Prices(output=4), RebaseSection(), RICH)


@given(
    st.lists(
        st.tuples(st.floats(1, 5000), st.floats(0, 1), st.sampled_from(["warm"] * 5 + ["cold"])),
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
