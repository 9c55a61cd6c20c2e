"""The account of a session: every lost cache hit has a cause, and every rebase is followed."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import assistant, calls, lines, result, text, user
from context.scenes import ask, bash, go_on, outputs, use
from foredeck.accounting.account import Account, AccountingMethod, Money, RebaseBalance, runs_of
from foredeck.accounting.bookkeeping import account_of
from foredeck.accounting.stored import StoredCalls
from foredeck.model.call_values import CHARS_PER_TOKEN, Ack
from foredeck_lab.cost_command import cost_text

COST = {"input": 3.0, "output": 15.0, "cacheRead": 0.3, "cacheWrite": 3.75}


def account(host: Host, cache: str = "ideal") -> Account:
    """The account of what the host has stored so far."""
    return account_of(StoredCalls(host.store, host.session), AccountingMethod(cache))


def start(host: Host, count: int = 2) -> None:
    ask(host)
    outputs(host, count, "s")


def newest(host: Host) -> dict[str, int]:
    """What the newest call lost."""
    lines_ = account(host).lines
    assert all(not line.lost for line in lines_[:-1])
    return lines_[-1].lost


def test_calls_that_only_append_lose_nothing(host: Host) -> None:
    start(host, 4)
    told = account(host)
    assert not told.lost
    assert len(told.lines) == 5
    first, last = told.lines[0], told.lines[-1]
    assert (first.ours.cached, last.kind) == (0, "append")
    assert last.ours.cached == pytest.approx(told.lines[-2].ours.tokens)
    assert told.plain_cost == pytest.approx(told.cost, rel=0.02)
    assert told.cached + told.uncached == pytest.approx(sum(n.ours.tokens for n in told.lines))


def change_tools(host: Host) -> None:
    host.tools = [*host.tools, {"name": "more", "description": "", "parameters": {}}]


def insert_a_note(host: Host) -> None:
    """One that another extension puts between messages, without an entry."""
    host.messages.insert(3, {"role": "custom", "content": "note", "timestamp": 7})
    host.entries.insert(3, None)


CAUSES: list[tuple[Callable[[Host], None], str]] = [
    (lambda host: host.wait(301), "expiry"),
    (lambda host: setattr(host, "model", {**(host.model or {}), "id": "m2"}), "model switch"),
    (change_tools, "system prompt or tools"),
    (lambda host: host.compact("What was done.", 2), "host edit: compaction"),
    (lambda host: host.back(len(host.messages) - 2), "host edit: branch"),
    (lambda host: host.change(2, content=[text("redacted")]), "another extension"),
    (insert_a_note, "another extension"),
]


@pytest.mark.parametrize(("happens", "cause"), CAUSES)
def test_what_is_lost_has_its_cause(
    host: Host, happens: Callable[[Host], None], cause: str
) -> None:
    start(host, 4)
    happens(host)
    ask(host)
    assert list(newest(host)) == [cause]


def test_a_prompt_that_the_host_has_kept_warm_does_not_expire(host: Host) -> None:
    start(host)
    host.wait(250)
    warmed = host.now_ms
    host.wait(250)
    host.add(assistant("Hm."), user("Go on."))
    host.warmed_ms = warmed
    host.call()
    assert not newest(host)


def test_what_is_ours_again_after_a_call_without_foredeck_is_its_doing(host: Host) -> None:
    start(host)
    host.compact("What was done.", 3)
    ask(host, "Go on.")
    bash(host, "s0", lines(20))
    host.off()
    go_on(host, "And?", answer="Hm.")
    told = account(host)
    assert "unexplained" not in told.lost
    assert "without foredeck" in told.lines[-1].lost


def test_a_rebase_that_pays_says_what_it_cost_and_brought_back(new_host: NewHost) -> None:
    host = new_host(
        rebase={"carrying_factor": 0, "guard": 10}, seed_window={"per_turn": 1, "turns": 1}
    )
    host.model = {**(host.model or {}), "cost": COST}
    ask(host)
    bash(host, "big", lines(400, "big"))
    outputs(host, 6)
    told = account(host)
    paid = [rebase for rebase in told.rebases if rebase.reason == "pays"]
    assert paid
    assert set(told.lost) == {"rebase: paid"}
    first = paid[0]
    assert first.saved > 1000
    assert 0 < first.lost < first.saved, "what left the prompt is not sent again"
    assert first.paid == pytest.approx(first.lost * 1.15)
    calls_since = len(told.lines) - first.call + 1
    assert first.back == pytest.approx(first.saved * 0.1 * calls_since)
    assert set(first.weighed) >= {"carrying_cost", "rewrite_cost"}
    assert told.cost < told.plain_cost
    assert told.figure.in_money
    assert told.figure.ours == pytest.approx(told.cost * 3 / 1_000_000, rel=0.001)


def test_a_rebase_at_high_water_is_forced(new_host: NewHost) -> None:
    host = new_host()
    host.set_window(int(40_000 / CHARS_PER_TOKEN))
    ask(host)
    for number in range(6):
        use(host, f"c{number}", "bash", lines(200, f"c{number}"), command=f"{number}")
    assert set(account(host).lost) == {"rebase: forced"}


def test_the_order_of_pools_spoils_every_call(new_host: NewHost) -> None:
    host = new_host(layout="pools")
    start(host, 3)
    assert set(account(host).lost) == {"layout"}


def test_what_the_provider_did_not_find_is_unexplained(host: Host) -> None:
    start(host, 6)
    usage = {"input": 5, "cacheRead": 0, "cacheWrite": 5000}
    host.add(assistant("Hm.", usage=usage), user("Go on."))
    host.call()
    told = account(host)
    assert set(told.lost) == {"unexplained"}
    assert (told.compared, told.lines[-2].lost["unexplained"] > 500) == (1, True)
    names = [name for name, _, _ in told.comparison()]
    assert names[:2] == ["prompts", "read from the cache"]


def test_what_another_extension_has_rewritten_is_put_down_to_it(host: Host) -> None:
    start(host, 6)
    usage = {"input": 5, "cacheRead": 0, "cacheWrite": 5000}
    host.add(assistant("Hm.", usage=usage), user("Go on."))
    host.outcomes[0] = host.outcomes[0].model_copy(update={"reason": "messages from number 1 on"})
    sent = host.call()
    assert Ack(sent.call - 1, "rewritten", "messages from number 1 on") in sent.record.acks
    assert set(account(host).lost) == {"another extension"}


def test_the_cache_is_that_of_the_wire(host: Host) -> None:
    start(host)
    stored = list(StoredCalls(host.store, host.session))
    assert account_of(stored, AccountingMethod()).cache == "anthropic"
    host.model = {**(host.model or {}), "api": "openai-responses"}
    bash(host, "x")
    stored = list(StoredCalls(host.store, host.session))
    assert account_of(stored, AccountingMethod()).cache == "openai"


def test_more_blocks_than_a_marker_looks_back_over(host: Host) -> None:
    start(host, 8)
    many = [result(f"m{n}", "bash", f"{n}") for n in range(25)]
    host.add(*(message for each in many for message in (assistant("So."), each)))
    host.call()
    assert set(account(host, "anthropic").lost) <= {"provider's rule"}
    assert not account(host, "ideal").lost


def test_a_call_that_was_never_sent_is_left_out(host: Host) -> None:
    start(host, 2)
    host.add(assistant("Hm."), user("Go on."))
    host.abort()
    host.add(assistant("Ha", stop="aborted"), user("No: this way."))
    host.call()
    told = account(host)
    assert not told.lost
    assert [line.call for line in told.lines] == [1, 2, 3, 5]


def test_rebases_at_calls_in_a_row_are_one_run() -> None:
    rebases = [RebaseBalance(call, "pays", 1, 2, 0, 1.0, 2.0, Money(), {}) for call in (4, 5, 9)]
    assert [[each.call for each in run] for run in runs_of(rebases)] == [[4, 5], [9]]


def test_calls_before_foredeck_are_no_switch_of_models(host: Host) -> None:
    host.add(user("Begin."), assistant(calls("b", "bash")), result("b", "bash", lines(60)))
    go_on(host)
    bash(host, "s0")
    told = account(host)
    before = told.lines[0]
    assert (before.kind, before.model) == ("host", "")
    assert not told.lost, "what was cached before is not known"
    assert before.plain.tokens == pytest.approx(before.ours.tokens, rel=0.02)
    printed = cost_text("s", told)
    assert "  before foredeck\n" in printed
    assert "adopted" not in printed
    assert not re.search(r"^\d+ calls, (,|$)", printed, re.MULTILINE), "no model without a name"
