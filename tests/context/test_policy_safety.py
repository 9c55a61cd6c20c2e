"""What no policy can change, whatever it says and however often another takes its place.

Pins, results in flight, the user's own text and bytes before a rebase are checked at every call
by `invariants.check`. Here the policies are as greedy as can be, and change between calls.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context.messages import PIXEL, assistant, calls, image, lines, result, text, thinking, user
from context.playing import fresh_host, take
from context.scenes import ask, bash, context_tool, finish, use
from context.sent import as_bytes
from context.strategies import Script, sound_scripts
from context.test_properties import BOUNDED
from examples import examples
from foredeck.model.call_values import Decision
from foredeck.model.quoting import is_reference

FEW = settings(BOUNDED, max_examples=examples(60))

GREEDY: dict[str, Any] = {
    "policy": "adaptive",
    "adaptive": {"patience": 1, "patience_edited": 1, "patience_arguments": 1},
    "rebase": {"carrying_factor": 0, "guard": 10, "min_saving_tokens": 0},
}
OTHERS: list[dict[str, Any]] = [
    GREEDY,
    {"policy": "seed-window", "seed_window": {"per_turn": 1, "turns": 1}},
    {"policy": "keep-all"},
]


@FEW
@given(
    script=sound_scripts(max_steps=6),
    policies=st.lists(st.sampled_from(OTHERS), min_size=7, max_size=7),
)
def test_another_policy_at_every_call_breaks_no_rule(
    script: Script, policies: list[dict[str, Any]]
) -> None:
    with fresh_host() as host:
        for step, settings_ in zip(script, policies, strict=False):
            host.restart(**settings_)
            take(host, step)
            host.call()


@FEW
@given(script=sound_scripts(max_steps=6), at=st.integers(1, 5))
def test_a_restart_with_other_constants_keeps_what_was_sent(script: Script, at: int) -> None:
    """Between two calls without a rebase every byte stands: decisions are not made again."""
    with fresh_host(**GREEDY) as host:
        for number, step in enumerate(script):
            before = host.past.sent[-1] if host.past.sent else None
            if number == at:
                host.restart(**OTHERS[1])
            take(host, step)
            sent = host.call()
            if before is not None and sent.decision == Decision():
                kept = len(before.prompt)
                assert as_bytes(sent.prompt[:kept]) == as_bytes(before.prompt)


def test_a_pinned_result_stays_and_everything_else_goes(new_host: Any) -> None:
    host = new_host(**GREEDY)
    ask(host)
    bash(host, "kept")
    context_tool(host, "t", "pin", "@3")
    for number in range(6):
        bash(host, f"c{number}")
    finish(host)
    host.wait(600)
    sent = ask(host, "x" * 20_000)
    assert "output of kept" in sent.text(2)
    assert is_reference(sent.text(6))
    assert sent.text(len(sent.messages) - 1) == "x" * 20_000


def test_calls_in_flight_and_images_just_sent_stay(new_host: Any) -> None:
    host = new_host(**GREEDY)
    host.add(user("Look."), assistant(calls("i", "read", path="a.png")))
    host.add(result("i", "read", [text("Read image file [image/png]"), image(PIXEL)]))
    host.wait(600)
    sent = host.call()
    assert any(block.get("type") == "image" for block in sent.prompt[-1]["content"])
    host.add(assistant(calls("w", "write", path="a.txt", content="long " * 500)))
    host.add(result("w", "write", "ok"))
    host.wait(600)
    sent = host.call()
    assert sent.prompt[-2]["content"][0]["arguments"]["content"] == "long " * 500


@pytest.mark.parametrize("signed", [True, False])
def test_signed_thinking_inside_a_tool_loop_stays(new_host: Any, signed: bool) -> None:
    host = new_host(**GREEDY)
    ask(host)
    seal = {"thinkingSignature": "c2ln"} if signed else {}
    block = {**thinking("a thought " * 100), **seal}
    host.add(assistant(block, calls("t", "bash", command="x")), result("t", "bash", lines(40)))
    host.call()
    for number in range(4):
        host.wait(600)
        sent = use(host, f"n{number}", "bash", lines(40), command=f"{number}")
    assert sent.prompt[1]["content"][0] == block
    finish(host)
    host.wait(600)
    assert ask(host).prompt[1]["content"][0]["type"] == "toolCall"
