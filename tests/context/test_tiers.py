"""A price tier is avoided as the window is: the prompt folds before it would pass it."""

from __future__ import annotations

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import ask, bash
from context.sent import Sent
from foredeck.context.state.gauge import tokens_of

ABOVE = 20_000
COST = {"input": 2.0, "output": 10.0, "cacheRead": 0.1, "cacheWrite": 2.5}
DEARER = {"inputTokensAbove": ABOVE, "input": 4.0, "cacheRead": 0.2, "cacheWrite": 5.0}


def tiered(new_host: NewHost, **settings: object) -> Host:
    host = new_host(**settings)
    cost = {**COST, "tiers": [DEARER]}
    host.model = {**(host.model or {}), "cost": cost, "contextWindow": 1_000_000}
    ask(host)
    return host


def size(sent: Sent) -> int:
    return tokens_of(sent.record.stats, sent.record.stats.chars_sent)


def test_a_prompt_folds_before_it_passes_a_price_tier(new_host: NewHost) -> None:
    host = tiered(new_host)
    sent = [bash(host, f"s{number}", lines(120, f"s{number}")) for number in range(40)]
    reasons = [each.decision.reason for each in sent if each.decision.is_rebase]
    assert "tier" in reasons
    assert max(map(size, sent)) <= ABOVE
    first = next(each for each in sent if each.decision.reason == "tier")
    assert size(first) < 0.75 * ABOVE, "far enough below for what comes next"


def test_what_cannot_fold_passes_it(new_host: NewHost) -> None:
    host = tiered(new_host)
    for number in range(12):
        sent = ask(host, f"Question {number}. " + "All of this matters. " * 400)
    assert size(sent) > ABOVE
    assert not sent.decision.is_rebase
