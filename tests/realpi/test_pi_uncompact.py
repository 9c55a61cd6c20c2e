"""Chat put away and back in the real Pi: `/foredeck uncompact`."""

from __future__ import annotations

import os
from typing import Any

import pytest

from foredeck_bench.twin.script import Step
from harness import SMALL, TALK, Pi, both_versions, questions
from observed import answered, assert_stable, command_text, messages, stored
from test_pi_compaction import compactions
from test_pi_interactive import ask

BIG = {"compaction": {"enabled": True, "reserveTokens": 4000, "keepRecentTokens": 5000}}
"""What one more answer adds to a compacted chat is less than this."""
MANUAL = {"FOREDECK_COMPACTION__MANUAL": "foredeck"}


def prompts(pi: Pi, count: int, settings: dict[str, Any], more: list[Step]) -> tuple[Any, Any]:
    """Pi after so many questions, each with a long answer; and its model."""
    model = pi.serve([*(f"Answer {n}. {TALK}" for n in range(count)), *more], settings=settings)
    rpc = pi.rpc(*questions(count), foredeck=True, environment=MANUAL)
    return model, rpc


def taken_back(pi: Pi) -> list[bool | None]:
    """Of each compaction that foredeck stores, whether it is kept as taken back."""
    with stored(pi) as store:
        return [head.fields.get("taken_back") for head in store.query("compaction")]


def test_with_nothing_after_it_a_compaction_is_as_if_it_had_not_been(pi: Pi) -> None:
    model, rpc = prompts(pi, 3, SMALL, ["on"])
    rpc.compact()
    assert "is taken back" in command_text(rpc, "/foredeck uncompact")
    rpc.prompt("Go on.")
    before, after = answered(model)[-2:]
    assert messages(after)[: len(messages(before))] == messages(before)
    assert taken_back(pi) == [True]
    assert "There is no compaction on this branch" in command_text(rpc, "/foredeck uncompact")


def test_with_chat_after_it_that_stays(pi: Pi) -> None:
    more: list[Step] = [f"Answer {n}. {TALK}" for n in (3, 4)] + ["on"]
    model, rpc = prompts(pi, 3, SMALL, more)
    rpc.compact()
    rpc.prompt("Question 3")
    rpc.prompt("Question 4")
    compacted = answered(model)[-1]
    rpc.command("/foredeck uncompact")
    rpc.prompt("Go on.")
    first, after = answered(model)[2], answered(model)[-1]
    assert messages(after)[: len(messages(first))] == messages(first)
    assert compactions(rpc.entries())[0]["summary"] in compacted.request.text
    assert "Question 4" in after.request.text


@both_versions
def test_the_messages_are_put_back_at_each_call(pi: Pi) -> None:
    model, rpc = prompts(pi, 4, BIG, ["short", "on", "and on", "resumed", "without"])
    rpc.compact()
    rpc.prompt("Question 4")
    assert "Answer 0." not in "".join(str(m) for m in messages(answered(model)[-1])[1:])
    rpc.command("/foredeck uncompact")
    assert len(compactions(rpc.entries())) == 1
    rpc.prompt("Go on.")
    rpc.prompt("And on.")
    first, *_, last, newest = answered(model)[3:]
    assert messages(last)[: len(messages(first))] == messages(first)
    assert_stable([last, newest])
    assert rpc.shutdown() == 0
    again = pi.rpc("Resumed.", foredeck=True, arguments=["--continue"])
    assert_stable([newest, answered(model)[-1]])
    again.command("/foredeck off")
    again.prompt("Without.")
    assert f"Answer 0. {TALK}" not in answered(model)[-1].request.text


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_a_person_takes_compactions_back_at_the_terminal(pi: Pi) -> None:
    script = [*(f"{TALK} the end of {n}" for n in range(4)), "in between", "and after", "at last"]
    model = pi.serve(script, settings=BIG)
    with pi.terminal(foredeck=True, environment=MANUAL) as typed:
        typed.wait_until(lambda screen: "\nforedeck\n" in f"{screen}\n", "foredeck")
        for number in range(4):
            ask(typed, f"Question {number}", f"the end of {number}")
        typed.submit("/compact").wait_for("[compaction]")
        typed.submit("/foredeck uncompact").wait_for("is taken back")
        ask(typed, "Question between", "in between")
        typed.submit("/compact").wait_for("[compaction]")
        ask(typed, "Question after", "and after")
        typed.submit("/foredeck uncompact").wait_for("taken back: until the next")
        ask(typed, "Question at the end", "at last")
        assert typed.quit() == 0
    fourth, between, *_, last = answered(model)[3:]
    assert messages(between)[: len(messages(fourth))] == messages(fourth)
    assert messages(last)[: len(messages(between))] == messages(between)
