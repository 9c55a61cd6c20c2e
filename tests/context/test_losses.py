"""Reasoning that the model lacks: what foredeck leaves out, what the provider has dropped."""

from __future__ import annotations

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.restored import check_restored
from context.scenes import ask, command_text, finish, later, think
from context.sent import Sent
from context.test_account import account
from foredeck.model.calls import CallRecord, LostSum

SEAL = "c2VhbGVk" * 100
"""800 characters, which are 600 bytes."""


def seal(id: str) -> str:
    """One of its own, as long as all others."""
    return (id + SEAL)[: len(SEAL)]


def step(host: Host, id: str, reasoning: int | None = None, text: str = "") -> Sent:
    """A step of the loop with signed reasoning. `reasoning`: its tokens, as counted; `text`: what
    is told of it."""
    usage = None if reasoning is None else {"input": 100, "reasoning": reasoning}
    return think(host, id, text, seal(id), lines(40, id), usage=usage)


def turn(host: Host, steps: int = 8, reasoning: int | None = None, text: str = "") -> None:
    ask(host)
    for number in range(steps):
        step(host, f"s{number}", reasoning, text)


def report(host: Host, *ids: str, reason: str = "expired") -> None:
    """The provider has dropped the reasoning of these steps from the prompt of the newest call."""
    blocks = [{"type": "thinking", "signature": seal(id)} for id in ids]
    changes = [{"type": "thinking_dropped", "block": block, "reason": reason} for block in blocks]
    dropped = {"reasoning": changes}
    host.outcomes = [each.model_copy(update=dropped) for each in host.outcomes]


def record_of(host: Host) -> CallRecord:
    record = host.state.chat.newest_record
    assert record is not None
    return record


def expired(new_host: NewHost, reasoning: int | None = None) -> Host:
    """A session that a pause has let foredeck rewrite, with the next question."""
    host = new_host(adaptive={"patience": 1})
    turn(host, reasoning=reasoning)
    later(host)
    return host


def test_what_a_rebase_leaves_out_is_counted(new_host: NewHost) -> None:
    host = expired(new_host, reasoning=70)
    record = record_of(host)
    assert record.decision.is_rebase
    left_out = [index for index, _ in record.lost.ours]
    first = record.decision.changed_from or 0
    assert left_out == [index for index in range(1, 17, 2) if index > first]
    assert record.lost.sum == LostSum(len(left_out), 70 * len(left_out))
    assert record.lost_so_far == record.lost.sum
    ask(host)
    assert not record_of(host).lost.sum
    assert record_of(host).lost_so_far == record.lost.sum


def test_without_a_count_what_is_sealed_says_how_much_it_is(new_host: NewHost) -> None:
    host = expired(new_host)
    lost = record_of(host).lost.sum
    assert lost.tokens == round(lost.blocks * 600 / 3.5)


def test_what_a_provider_drops_is_counted_once_however_often_it_says_so(host: Host) -> None:
    turn(host, 3, reasoning=70)
    report(host, "s0", "s1")
    step(host, "more", 70)
    assert record_of(host).lost.sum == LostSum(dropped=2, dropped_tokens=140)
    report(host, "s0", "s1", "s2")
    step(host, "again", 70)
    assert record_of(host).lost.provider == ((5, 0),)
    host.restart()
    report(host, "s0", "s1", "s2")
    step(host, "restarted", 70)
    assert not record_of(host).lost.sum
    assert record_of(host).lost_so_far == LostSum(dropped=3, dropped_tokens=210)


def test_what_was_dropped_is_withheld_until_foredeck_leaves_it_out(new_host: NewHost) -> None:
    host = new_host(adaptive={"patience": 1})
    turn(host, reasoning=70, text="Hm.")
    report(host, "s2", "s3")
    withheld = [step(host, "first", 70).stats.withheld, step(host, "second", 70).stats.withheld]
    host.restart()
    withheld.append(step(host, "restarted", 70).stats.withheld)
    assert withheld == [2 * len("Hm.")] * 3
    later(host)
    assert {(5, 0), (7, 0)} <= host.state.chat.branch.lost
    assert record_of(host).stats.withheld == 0


def test_what_was_dropped_before_a_step_back_is_not_withheld_of_what_came_instead(
    host: Host,
) -> None:
    turn(host, 2, text="Hm.")
    report(host, "s1")
    host.back(3)
    assert step(host, "instead", text="Oh.").stats.withheld == 0
    report(host, "instead")
    assert step(host, "more").stats.withheld > 0


def test_what_the_provider_has_dropped_is_not_lost_once_more(new_host: NewHost) -> None:
    host = new_host(adaptive={"patience": 1})
    turn(host, reasoning=70)
    report(host, "s2", "s3")
    later(host)
    lost = record_of(host).lost
    assert lost.provider == ((5, 0), (7, 0))
    assert lost.ours
    assert not {*lost.ours} & {*lost.provider}


def test_only_reasoning_that_was_sent_can_be_lost(host: Host) -> None:
    turn(host, 2)
    report(host, "of another session")
    step(host, "more")
    assert not record_of(host).lost.sum


def test_another_branch_has_what_only_this_one_has_lost(host: Host) -> None:
    turn(host, 2, reasoning=70)
    leaf = host.leaf()
    step(host, "left", 70)
    report(host, "s0", "left")
    step(host, "lost", 70)
    host.go_to(leaf)
    ask(host, "Another way.")
    report(host, "s0")
    step(host, "here", 70)
    assert record_of(host).lost.provider == ((1, 0),)


def test_what_was_lost_before_a_change_of_layout_is_so_after_a_restart_too(host: Host) -> None:
    turn(host, 2, text="Hm.")
    report(host, "s1")
    step(host, "more", text="Hm.")
    finish(host)
    host.restart(layout="pools")
    ask(host)
    check_restored(host)


def test_what_comes_after_a_step_back_behind_a_rebase_is_not_lost(new_host: NewHost) -> None:
    host = expired(new_host, reasoning=70)
    first, until = host.state.chat.branch.rewritten[1:]
    host.back(until - 1)
    ask(host, "Another way.")
    assert host.state.chat.branch.rewritten[1:] == (first, until - 1)
    check_restored(host)


def test_the_user_can_see_it(new_host: NewHost) -> None:
    host = expired(new_host, reasoning=70)
    blocks = record_of(host).lost.sum.blocks
    ours = f"{blocks} blocks of reasoning"
    assert f", and {ours} (about {70 * blocks} tokens) left out because" in command_text(
        host, "why"
    )
    report(host, "s0")
    step(host, "more", 70)
    both = f"Lost to the model{{}}: {blocks + 1} blocks of reasoning, about {70 * blocks + 70} "
    both += f"tokens: {blocks} left out by foredeck, 1 dropped by the provider."
    assert both.format(" in this session") in command_text(host, "why")
    assert both.format("") in command_text(host, "cost")
    told = account(host)
    assert told.reasoning == LostSum(blocks, 70 * blocks, 1, 70)
    assert [each.reasoning for each in told.rebases] == [70 * blocks]
    assert told.to_json()["total"]["lost_reasoning"]["dropped_tokens"] == 70


@pytest.mark.parametrize(
    ("reason", "decision"), [("prefix_binding_mismatch", None), ("expired", "cold")]
)
def test_only_a_model_that_drops_reasoning_for_its_beginning_is_bound_from_then_on(
    new_host: NewHost, reason: str, decision: str | None
) -> None:
    host = new_host(adaptive={"patience": 1})
    host.model = {**(host.model or {}), "api": "openai-responses"}
    turn(host, 12, reasoning=20_000)
    report(host, "s0", reason=reason)
    assert later(host, seconds=3000).decision.reason == decision, (
        "bound, it is worth more than folding saves"
    )
