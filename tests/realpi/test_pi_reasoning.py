"""A model that binds its reasoning in every turn: a pause takes it only where that pays."""

from __future__ import annotations

import pytest

from foredeck_bench.twin.script import Step, Text, Thinking, call
from harness import Pi
from observed import answered, calls_of, results, stored

COLD = {"FOREDECK_REBASE__CACHE_TTL_S": "0", "FOREDECK_ADAPTIVE__PATIENCE": "1"}
"""Each call is like one after a pause, and what goes unused may fold at once."""


def step(number: int, thought: str) -> Step:
    return [Thinking(thought), call("bash", command=f"seq {number}00 {number}99")]


@pytest.mark.parametrize(
    ("id", "thought", "keeps"),
    [
        ("claude-opus-5-5", "so much to think about. " * 2000, True),
        ("claude-opus-5-5", "short", False),
        ("claude-opus-4-5", "so much to think about. " * 2000, False),
    ],
    ids=["much reasoning", "little", "not bound"],
)
def test_after_a_pause_reasoning_stays_that_is_worth_more(
    pi: Pi, id: str, thought: str, keeps: bool
) -> None:
    turn: list[Step] = [*(step(number, thought) for number in range(1, 9)), [Text("done")]]
    model = pi.serve([*turn, "and now"], id=id)
    rpc = pi.rpc("count", foredeck=True, arguments=["--thinking", "low"], environment=COLD)
    rpc.prompt("what now?")
    last = answered(model)[-1]
    kept = [block for m in last.request.messages for block in thoughts(m)]
    whole = ["\n" in text for text in results(last)]
    with stored(pi) as store:
        rebased = calls_of(store)[-1].decision.is_rebase
    assert rebased is not keeps
    assert (len(kept) == 8) is keeps
    assert whole[-5:] == [True] * 5, "the five newest results stay in any case"
    assert all(whole) is keeps


def thoughts(message: dict[str, object]) -> list[object]:
    content = message["content"] if message["role"] == "assistant" else ()
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if block.get("type") == "thinking"]
