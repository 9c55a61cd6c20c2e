"""Chat put away and back in the real Pi: `/foredeck uncompact`, and calls of the user's choice."""

from __future__ import annotations

import os
from typing import Any

import pytest

from foredeck.accounting.account import AccountingMethod
from foredeck.accounting.bookkeeping import account_of
from foredeck.accounting.stored import StoredCalls
from foredeck_bench.scripted import call
from foredeck_bench.scripted.steps import Step
from harness import Pi, one_version
from observed import answered, assert_stable, messages, notified, results, session_of, stored
from test_pi_compaction import SMALL, TALK, compactions, handle
from test_pi_interactive import ask

BIG = {"compaction": {"enabled": True, "reserveTokens": 4000, "keepRecentTokens": 5000}}
"""What one more answer adds to a compacted chat is less than this."""
MANUAL = {"FOREDECK_COMPACTION__MANUAL": "foredeck"}


def prompts(pi: Pi, count: int, settings: dict[str, Any], more: list[Step]) -> tuple[Any, Any]:
    """Pi after so many questions, each with a long answer; and its model."""
    model = pi.serve([*(f"Answer {n}. {TALK}" for n in range(count)), *more], settings=settings)
    rpc = pi.rpc(foredeck=True, environment=MANUAL)
    for number in range(count):
        rpc.prompt(f"Question {number}")
    return model, rpc


def taken_back(pi: Pi) -> list[bool | None]:
    """Of each compaction that foredeck stores, whether it is kept as taken back."""
    with stored(pi) as store:
        return [head.fields.get("taken_back") for head in store.query("compaction")]


def test_with_nothing_after_it_a_compaction_is_as_if_it_had_not_been(pi: Pi) -> None:
    model, rpc = prompts(pi, 3, SMALL, ["on"])
    rpc.compact()
    rpc.command("/foredeck uncompact")
    assert "is taken back" in notified(rpc)[-1]
    rpc.prompt("Go on.")
    assert model.violations == []
    before, after = answered(model)[-2:]
    assert messages(after)[: len(messages(before))] == messages(before)
    assert taken_back(pi) == [True]
    rpc.command("/foredeck uncompact")
    assert "There is no compaction on this branch" in notified(rpc)[-1]


def test_with_chat_after_it_pi_keeps_from_the_earlier_place(pi: Pi) -> None:
    more: list[Step] = [f"Answer {n}. {TALK}" for n in (3, 4)] + ["on", "plain"]
    model, rpc = prompts(pi, 3, SMALL, more)
    rpc.compact()
    rpc.prompt("Question 3")
    rpc.prompt("Question 4")
    compacted = answered(model)[-1]
    rpc.command("/foredeck uncompact")
    assert notified(rpc)[-1].endswith("in the chat again.")
    assert len(compactions(rpc.entries())) == 2
    rpc.prompt("Go on.")
    assert model.violations == []
    first, after = answered(model)[2], answered(model)[-1]
    assert messages(after)[: len(messages(first))] == messages(first)
    assert compactions(rpc.entries())[0]["summary"] in compacted.request.text
    assert "Question 4" in after.request.text
    assert "is summed up" not in after.request.text
    assert rpc.shutdown() == 0
    assert pi.print("plainly", arguments=["--continue"]).code == 0
    assert f"Answer 0. {TALK}" in answered(model)[-1].request.text


@one_version
def test_one_of_two_compactions_is_taken_back(pi: Pi) -> None:
    more: list[Step] = [f"Answer {n}. {TALK}" for n in (3, 4)] + ["on"]
    model, rpc = prompts(pi, 3, SMALL, more)
    rpc.compact()
    rpc.prompt("Question 3")
    first = compactions(rpc.entries())[0]["summary"]
    rpc.compact()
    rpc.prompt("Question 4")
    rpc.command("/foredeck uncompact")
    rpc.prompt("Go on.")
    assert model.violations == []
    before, after = answered(model)[3], answered(model)[-1]
    assert first in before.request.text
    assert sorted(map(bool, taken_back(pi))) == [False, True]
    assert messages(after)[: len(messages(before))] == messages(before)
    assert "Answer 4." in after.request.text


def test_where_pi_refuses_the_messages_are_put_back_at_each_call(pi: Pi) -> None:
    model, rpc = prompts(pi, 4, BIG, ["short", "on", "and on", "resumed", "without"])
    rpc.compact()
    rpc.prompt("Question 4")
    assert "Answer 0." not in "".join(str(m) for m in messages(answered(model)[-1])[1:])
    rpc.command("/foredeck uncompact")
    assert "adds the messages to each call" in notified(rpc)[-1]
    assert len(compactions(rpc.entries())) == 1
    rpc.prompt("Go on.")
    rpc.prompt("And on.")
    assert model.violations == []
    first, *_, last, newest = answered(model)[3:]
    assert messages(last)[: len(messages(first))] == messages(first)
    assert_stable([last, newest])
    assert rpc.shutdown() == 0
    again = pi.rpc(foredeck=True, arguments=["--continue"])
    again.prompt("Resumed.")
    assert_stable([newest, answered(model)[-1]])
    again.command("/foredeck off")
    again.prompt("Without.")
    assert f"Answer 0. {TALK}" not in answered(model)[-1].request.text
    assert model.violations == []


def test_what_is_taken_back_goes_when_pi_compacts_again(pi: Pi) -> None:
    model, rpc = prompts(pi, 4, BIG, ["short", f"long {TALK}", f"long {TALK}", "on"])
    rpc.compact()
    rpc.prompt("Question 4")
    rpc.command("/foredeck uncompact")
    rpc.prompt("Question 5")
    rpc.prompt("Question 6")
    assert f"Answer 0. {TALK}" in answered(model)[-1].request.text
    summary = rpc.compact()["summary"]
    rpc.prompt("Go on.")
    assert model.violations == []
    last = answered(model)[-1].request.text
    assert f"Answer 0. {TALK}" not in last
    assert summary in last


@pytest.fixture
def worked(pi: Pi) -> tuple[Any, Any]:
    """Pi after five calls: two questions with a tool call each, and a third."""
    script: list[Step] = [call("bash", command="seq 1000 1400"), f"First. {TALK}"]
    script += [call("bash", command="seq 2000 2400"), "Second.", "Third."]
    model = pi.serve([*script, lambda _: call("activate", id=f"{handle(pi)} turns 1"), "on", "b"])
    rpc = pi.rpc(foredeck=True)
    for question in ("Count.", "Count on.", "And?"):
        rpc.prompt(question)
    return model, rpc


@one_version
def test_calls_of_choice_give_way_to_a_summary_and_come_back(
    pi: Pi, worked: tuple[Any, Any]
) -> None:
    model, rpc = worked
    before = answered(model)[-1]
    rpc.command("/foredeck compact --calls 1-2")
    assert f"A summary, {handle(pi)}, replaces the answers of calls 1 to 2" in notified(rpc)[-1]
    rpc.prompt("What was it?")
    assert model.violations == []
    without, found = answered(model)[-2:]
    assert "1399" not in without.request.text
    assert f"First. {TALK}" not in without.request.text
    for stays in ("Count.", "2399", "Second.", "Third.", "[foredeck] Turn"):
        assert stays in without.request.text
    assert f"First. {TALK}".strip() in results(found)[-1]
    assert_stable([without, found])
    rpc.command("/foredeck why @3")
    assert notified(rpc)[-1].endswith(
        f"It left with the chat that the summary {handle(pi)} replaces. activate @3 brings it back."
    )
    rpc.command("/foredeck uncompact")
    rpc.prompt("And back.")
    assert model.violations == []
    assert taken_back(pi) == [True]
    back = answered(model)[-1]
    assert messages(back)[: len(messages(before))] == messages(before)
    with stored(pi) as store:
        method = AccountingMethod("ideal")
        lost = account_of(StoredCalls(store, session_of(store)), method).lost
    assert set(lost) == {"compact or uncompact"}


def test_calls_that_cannot_be_put_away_are_refused_in_words(worked: tuple[Any, Any]) -> None:
    _, rpc = worked
    for arguments, answer in (
        ("--calls", "with the numbers of two calls"),
        ("--calls 3-9", "The answers of calls 1 to 4 are in the chat"),
        ("--calls 4-2", "The answers of calls 1 to 4 are in the chat"),
        ("--calls 1-3 now", "with the numbers of two calls"),
    ):
        rpc.command(f"/foredeck compact {arguments}")
        assert answer in notified(rpc)[-1]


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_a_person_takes_compactions_back_at_the_terminal(pi: Pi) -> None:
    script = [*(f"{TALK} the end of {n}" for n in range(4)), "in between", "and after", "at last"]
    model = pi.serve(script, settings=BIG)
    with pi.terminal(foredeck=True, environment=MANUAL) as typed:
        typed.wait_until(lambda screen: "\nforedeck\n" in f"{screen}\n", "foredeck")
        for number in range(4):
            ask(typed, f"Question {number}", f"the end of {number}")
        typed.submit("/compact")
        typed.wait_for("[compaction]")
        typed.submit("/foredeck uncompact")
        typed.wait_for("is taken back")
        ask(typed, "Question between", "in between")
        typed.submit("/compact")
        typed.wait_for("[compaction]")
        ask(typed, "Question after", "and after")
        typed.submit("/foredeck uncompact")
        typed.wait_for("adds the messages")
        ask(typed, "Question at the end", "at last")
        assert typed.quit() == 0
    assert model.violations == []
    fourth, between, *_, last = answered(model)[3:]
    assert messages(between)[: len(messages(fourth))] == messages(fourth)
    assert messages(last)[: len(messages(between))] == messages(between)
