"""Models that lose all of their reasoning behind the first byte that changes: it has a price."""

from __future__ import annotations

from typing import Any

import pytest

from context.conftest import NewHost
from context.driver import MODEL, Host
from context.heads import Counting
from context.messages import lines
from context.scenes import ask, bash, command_text, finish, later, think
from context.sent import Sent
from context.test_account import account
from context.test_ended_turns import seals
from context.test_window import folded
from foredeck.context.plan.wires import binds_in_every_turn

COST = {"input": 4, "output": 20, "cacheRead": 0.2, "cacheWrite": 5}
SMALL, MIDDLING, LARGE = 20, 250, 20_000
"""Tokens of the reasoning of an answer."""


def hosted(new_host: NewHost, model: str, **settings: Any) -> Host:
    rebase = {"gap": 10, **settings.pop("rebase", {})}
    rules = {"adaptive": {"patience": 1, "newest_results": 5}, "rebase": rebase}
    host = new_host(policy="adaptive", **rules, **settings)
    host.model = {**MODEL, "id": model, "cost": COST}
    return host


def step(host: Host, reasoning: int) -> Sent:
    """A command, with signed reasoning of so many tokens."""
    id = f"t{len(host.messages)}"
    usage = {"input": 100, "reasoning": reasoning}
    return think(host, id, "", output=lines(300, id), usage=usage)


def turn(host: Host, reasoning: int, steps: int = 12) -> None:
    """A turn of so many of them."""
    ask(host)
    for _ in range(steps):
        step(host, reasoning)
    finish(host)


def after_a_pause(host: Host, reasoning: int) -> tuple[list[str], Sent]:
    """The seals of a turn, and the first call of the next, after a pause."""
    turn(host, reasoning)
    before = seals(ask(host))
    return before, later(host)


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        *(("claude-opus-5-5", True), ("anthropic/claude-sonnet-5.5", True)),
        *(("claude-fable-5-2", True), ("gpt-6.2-sol", True), ("gpt-7", True)),
        *(("claude-opus-5", False), ("claude-fable-5", False), ("claude-opus-4-5", False)),
        *(("gpt-6.1-sol", False), ("gemini-4-neon", False)),
    ],
)
def test_which_models_bind_in_every_turn(name: str, bound: bool) -> None:
    assert binds_in_every_turn(name) is bound


@pytest.mark.parametrize("reasoning", [MIDDLING, LARGE])
def test_after_a_pause_reasoning_that_is_worth_more_stays(
    new_host: NewHost, reasoning: int
) -> None:
    host = hosted(new_host, "claude-opus-5-5")
    before, sent = after_a_pause(host, reasoning)
    assert sent.decision.kind == "append"
    assert seals(sent) == before
    assert folded(sent) == []


def test_after_a_pause_the_head_stays_where_nothing_folds(new_host: NewHost) -> None:
    host = hosted(new_host, "claude-opus-5-5")
    host.sections = [Counting("news")]
    head = str(ask(host).prompt[0])
    step(host, SMALL)
    sent = later(host)
    assert str(sent.prompt[0]) == head
    assert len(seals(sent)) == 1


@pytest.mark.parametrize(
    ("model", "reasoning"), [("claude-opus-5-5", SMALL), ("claude-opus-4-5", LARGE)]
)
def test_after_a_pause_content_goes_where_that_saves_more(
    new_host: NewHost, model: str, reasoning: int
) -> None:
    before, sent = after_a_pause(hosted(new_host, model), reasoning)
    assert (sent.decision.kind, sent.decision.reason) == ("rebase", "cold")
    assert folded(sent)
    assert len(seals(sent)) < len(before)


def test_after_one_rebase_the_next_waits_for_ten_calls(new_host: NewHost) -> None:
    host = hosted(new_host, "claude-opus-5-5")
    _, sent = after_a_pause(host, SMALL)
    assert sent.decision.is_rebase
    kinds = []
    for _ in range(12):
        kinds.append(step(host, SMALL).decision.kind)
        kinds.append(later(host).decision.kind)
    assert "rebase" in kinds
    assert kinds.index("rebase") >= 9


def test_why_says_when_the_next_rebase_may_come(new_host: NewHost) -> None:
    free = {"carrying_factor": 0, "guard": 10}
    host = hosted(new_host, "m1", rebase=free)
    ask(host)
    for number in range(7):
        sent = bash(host, f"c{number}", lines(300, f"{number} of it"))
    while not sent.decision.is_rebase:
        sent = bash(host, f"d{len(host.messages)}", lines(300, f"{len(host.messages)} of it"))
    sent = bash(host, "after", lines(300, "after"))
    assert sent.decision.kind == "append"
    assert "in 9 calls at the earliest" in command_text(host, "why")


def test_why_names_the_turn_that_binds_and_what_was_weighed_before_the_next(
    new_host: NewHost,
) -> None:
    host = hosted(new_host, "claude-opus-5-5", rebase={"guard": 10})
    turn(host, SMALL, steps=22)
    assert "reasoning of this turn binds it until the turn ends." in command_text(host, "why")
    decision = ask(host).decision
    assert (decision.reason, decision.factor) == ("pays", 0.5)
    assert decision.carrying_cost is not None
    whole = (decision.rewrite_cost or 0) + (decision.reasoning_cost or 0)
    assert whole / 2 <= decision.carrying_cost < whole
    weighed = account(host).to_json()["rebases"][-1]["weighed"]
    assert weighed["factor"] == 0.5
    assert weighed["reasoning_cost"] > 0
    said = command_text(host, "why", "--verbose")
    assert "the reasoning that is lost has cost" in said
    assert "the last chance before its reasoning binds, so 50% of the cost was enough" in said
