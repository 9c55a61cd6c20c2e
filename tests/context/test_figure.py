"""What a session has cost beside plain Pi: what counts on which side."""

from __future__ import annotations

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import assistant, lines
from context.scenes import ask, bash, context_tool
from foredeck.accounting.figure import CostFigure, session_figure
from foredeck.context.state.call_log import spent_at, spent_by
from foredeck.model.call_values import PromptTokens
from foredeck.model.calls import CallRecord, in_order

COST = {"input": 3.0, "output": 15.0, "cacheRead": 0.3, "cacheWrite": 3.75}


def records(host: Host) -> list[CallRecord]:
    heads = host.store.query("call", {"session": host.session})
    return in_order(head.fields for head in heads)


def figure(host: Host) -> CostFigure:
    return session_figure(host.store, host.session, records(host)[-1])


def plain(record: CallRecord) -> PromptTokens:
    assert record.cache.baseline is not None
    return record.cache.baseline


def test_our_tools_are_not_on_plain_pis_side(host: Host) -> None:
    ask(host)
    bash(host, "s0")
    context_tool(host, "p", "pin", "@3")
    before, after = records(host)[-2:]
    assert sum(plain(before)) == sum(plain(after)), "neither the call nor its result"
    assert after.stats.chars_host > before.stats.chars_host


def test_plain_pi_compacts_where_its_window_is_full(new_host: NewHost) -> None:
    host = new_host()
    host.model = {**(host.model or {}), "contextWindow": 40_000}
    ask(host)
    for number in range(8):
        bash(host, f"s{number}", lines(600, f"s{number}"))
    made = records(host)
    sizes = [sum(plain(record)) for record in made]
    assert max(sizes) <= 40_000
    compacted = next(i for i in range(1, len(sizes)) if sizes[i] < sizes[i - 1])
    assert plain(made[compacted]).read < plain(made[compacted - 1]).read, "cached no longer"


def test_both_sides_are_in_the_tokens_that_the_provider_has_counted(host: Host) -> None:
    ask(host)
    bash(host, "s0", lines(200, "s0"))
    sent = records(host)[-1]
    cache, before = sent.cache, figure(host)
    foreseen = (cache.read or 0) + (cache.written or 0) + (cache.fresh or 0)
    usage = {"input": 0, "cacheRead": foreseen, "cacheWrite": foreseen // 5, "output": 9}
    host.add({**assistant("Yes."), "usage": usage, "provider": "anthropic", "model": "m1"})
    ask(host)
    alone = spent_at(records(host)[-1])
    after, whole = figure(host), spent_at(sent)
    assert after.ours == pytest.approx(before.ours + alone.ours + 0.2 * whole.ours, rel=0.01)
    assert after.plain == pytest.approx(before.plain + alone.plain + 0.2 * whole.plain, rel=0.01)


def test_every_branch_counts(host: Host) -> None:
    ask(host)
    leaf = host.leaf()
    bash(host, "left")
    before = figure(host)
    host.go_to(leaf)
    bash(host, "right")
    after = figure(host)
    assert after.calls == before.calls + 1
    assert after.plain > before.plain
    assert after.ours > before.ours


def test_the_newest_record_has_the_sums_of_all(new_host: NewHost) -> None:
    host = new_host(seed_window={"per_turn": 1, "turns": 1}, policy="seed-window")
    host.model = {**(host.model or {}), "cost": COST}
    ask(host)
    for number in range(6):
        bash(host, f"s{number}", lines(200, f"s{number}"))
    made = records(host)
    (kept,) = made[-1].spent
    (summed,) = spent_by(made)
    assert kept.calls == summed.calls == len(made)
    assert kept.plain == pytest.approx(summed.plain, abs=1)
    assert kept.ours == pytest.approx(summed.ours, abs=1)
    told = figure(host)
    assert told.in_money
    assert told.ours == pytest.approx(kept.ours * 3 / 1_000_000)
