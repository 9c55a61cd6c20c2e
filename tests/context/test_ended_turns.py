"""A pause in the middle of a turn whose sealed reasoning would keep what may go."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import ask, command_text, think
from context.sent import Sent
from context.test_window import folded
from foredeck.context import wording
from foredeck.model.call_values import Decision
from foredeck.model.messages import texts_in

STEPS = 8


def step(host: Host, id: str, size: int = 400) -> Sent:
    """A step of the loop, with reasoning that is sealed as on Anthropic's wire."""
    return think(host, id, output=lines(size, id))


def paused(host: Host, old: int = 400, new: int = 20) -> Sent:
    """A turn of sealed steps, whose older half may go, and the first call after a pause in the
    middle of it. `old`, `new`: how many lines each step of either half has brought."""
    ask(host)
    for number in range(STEPS):
        step(host, f"s{number}", old if number < STEPS // 2 else new)
    host.wait(600)
    return step(host, "after", new)


def seals(sent: Sent) -> list[str]:
    """The signatures that are left, in their order."""
    said: list[Any] = [m["content"] for m in sent.prompt if m["role"] == "assistant"]
    blocks = [block for content in said for block in content]
    return [block["thinkingSignature"] for block in blocks if block["type"] == "thinking"]


def ends(sent: Sent) -> list[int]:
    """Where the word that ends a turn stands."""
    word = [wording.turn_ended()]
    return [i for i, m in enumerate(sent.prompt) if texts_in(m.get("content")) == word]


def test_after_a_pause_a_turn_ends_with_a_word_and_what_may_go_folds(host: Host) -> None:
    sent = paused(host)
    assert (sent.decision.kind, sent.decision.reason) == ("rebase", "cold")
    assert sent.decision.turn_ended
    assert folded(sent)
    assert ends(sent) == [len(sent.prompt) - 1]
    assert seals(sent) == ["seal-s0"], "what stands before the first changed byte stays"


def test_the_turn_goes_on_after_it_with_reasoning_that_binds(host: Host) -> None:
    before = paused(host)
    sent = step(host, "next")
    assert sent.decision == Decision()
    assert sent.prompt[: len(before.prompt)] == before.prompt
    assert seals(sent) == ["seal-s0", "seal-next"]


def test_the_user_can_ask_why(host: Host, snapshot: SnapshotAssertion) -> None:
    paused(host)
    assert command_text(host, "why") == snapshot


@pytest.mark.parametrize("sizes", [(20, 20), (400, 400)], ids=["2,000 tokens", "half"])
def test_where_less_could_go_the_reasoning_stays(host: Host, sizes: tuple[int, int]) -> None:
    sent = paused(host, *sizes)
    assert sent.decision == Decision()
    assert (ends(sent), len(seals(sent))) == ([], STEPS + 1)


def test_how_much_it_takes_can_be_set(new_host: NewHost) -> None:
    sent = paused(new_host(rebase={"ending_share": 0.2}), new=400)
    assert sent.decision.turn_ended


def test_it_can_be_switched_off(new_host: NewHost) -> None:
    sent = paused(new_host(rebase={"ending_share": 1}))
    assert sent.decision == Decision()
    assert (ends(sent), len(seals(sent))) == ([], STEPS + 1)
