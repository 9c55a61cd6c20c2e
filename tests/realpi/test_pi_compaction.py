"""Compaction in the real Pi: at its threshold, by the user, after a refused prompt, without us."""

from __future__ import annotations

from typing import Any

from foredeck_bench.twin.script import Step, call, overflow
from harness import SMALL, TALK, Pi, both_versions, on_either, questions
from observed import answered, assert_stable, messages, results, session_of, stored

"""About 2,850 tokens by the scripted model's count."""


def compactions(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry for entry in entries if entry["type"] == "compaction"]


def records(pi: Pi) -> list[dict[str, Any]]:
    """What the store has of compactions, oldest first."""
    with stored(pi) as store:
        found = store.query("compaction", {"session": session_of(store)})
        return [dict(head.fields) for head in sorted(found, key=lambda h: h.fields["call"])]


def handle(pi: Pi) -> str:
    """The handle of the newest compaction."""
    with stored(pi) as store:
        members = [m for m in store.query("member") if m.fields["object_type"] == "compaction"]
        return f"@{max(m.fields['ordinal'] for m in members)}"


@both_versions
def test_at_the_threshold_chat_is_summed_up_without_a_model(pi: Pi) -> None:
    script: list[Step] = [f"Answer {n}. {TALK}" for n in range(6)]
    script += [lambda _: call("activate", id=f"{handle(pi)} turns 2"), "found"]
    model = pi.serve(script, context_window=20_000, settings=SMALL)
    rpc = pi.rpc(*questions(7), foredeck=True)
    (entry,) = compactions(rpc.entries())
    assert entry["fromHook"] is True
    assert entry["summary"].startswith("[foredeck] Turns 1-")
    assert "- turn 1: Question 0" in entry["summary"]
    last = answered(model)[-1]
    assert entry["summary"] in last.request.text
    assert " Question 1\n--- assistant\n Answer 1." in results(last)[-1]
    (record,) = records(pi)
    assert (record["asked_by"], record["written_by"]) == ("threshold", "foredeck")
    assert not [r for r in model.requests if r.side]


@both_versions
def test_the_users_own_compaction_is_written_by_the_model_and_can_be_activated(pi: Pi) -> None:
    script: list[Step] = [f"Answer {n}. {TALK}" for n in range(3)]
    script += [lambda _: call("activate", id=f"{handle(pi)} turns 1-2"), "found", "on"]
    model = pi.serve(script, settings=SMALL)
    rpc = pi.rpc(*questions(3), foredeck=True)
    assert "## Goal" in rpc.compact("mind the tests")["summary"]
    rpc.prompt("What was it?")
    rpc.prompt("And on.")
    (record,) = records(pi)
    assert (record["asked_by"], record["written_by"]) == ("user", "model")
    assert record["instructions"] == "mind the tests"
    assert f"[foredeck] The summary above covers {handle(pi)}" in (answered(model)[-1].request.text)
    assert " Question 0\n--- assistant\n Answer 0." in results(answered(model)[-1])[-1]
    before, after = answered(model)[-2:]
    assert messages(after)[: len(messages(before))] == messages(before)


def test_a_prompt_that_is_refused_as_too_long_is_tried_once_more_and_smaller(pi: Pi) -> None:
    """Pi believes in a larger window than the provider has."""
    script: list[Step] = [f"Answer {n}. {TALK}" for n in range(4)] + ["went through", "on"]
    model = pi.serve(script, context_window=200_000, settings=SMALL, window=11_000)
    rpc = pi.rpc(foredeck=True)
    for number in range(5):
        rpc.prompt(f"Question {number} {TALK if number < 2 else ''}")
    assert len([r for r in model.requests if r.status == 400]) == 1
    assert "went through" in str(rpc.entries()[-1])
    record = records(pi)[0]
    assert record["asked_by"] == "overflow"
    assert record["refused"]["chars"] > 0
    assert len(compactions(rpc.entries())) == 1
    assert "Question 4" in answered(model)[-1].request.text


def test_a_result_that_makes_the_prompt_too_long_is_tried_once_more_in_its_turn(pi: Pi) -> None:
    """The question and the call in flight stay; what was said before goes."""
    asked = "Look. " + "".join(f"Mind rule {n} of them. " for n in range(50)) + "That is all."
    script: list[Step] = [f"Answer {n}. {TALK}" for n in range(2)]
    script += [call("bash", command="seq 1000 3000"), "went through", "on"]
    model = pi.serve(script, context_window=200_000, settings=SMALL, window=11_000)
    pi.rpc(f"Question 0 {TALK}", "Question 1", asked, "And on.", foredeck=True)
    assert [r.status for r in model.requests if not r.side] == [200, 200, 200, 400, 200, 200]
    retried, after = answered(model)[-2:]
    assert asked in retried.request.text
    assert "\n2400\n" in results(retried)[-1]
    assert TALK not in retried.request.text
    assert_stable([retried, after])
    assert [record["asked_by"] for record in records(pi)] == ["overflow"]


def test_a_prompt_that_is_refused_again_is_left_to_pi(pi: Pi) -> None:
    script: list[Step] = [f"Answer {n}. {TALK}" for n in range(3)]
    script += [overflow(12_000, 11_000), overflow(9_000, 8_000), "later"]
    model = pi.serve(script, settings=SMALL)
    rpc = pi.rpc(*questions(4), foredeck=True)
    assert [r.status for r in model.requests] == [200, 200, 200, 400, 400]
    assert "prompt is too long" in str(rpc.entries()[-1])
    rpc.prompt("Once more.")
    assert "later" in str(rpc.entries()[-1])


@on_either("away", {"FOREDECK": "off"}, {"FOREDECK_PYTHON": "/nowhere/python"})
def test_without_the_engine_pi_compacts_in_its_own_way(pi: Pi, away: dict[str, str]) -> None:
    pi.serve([f"Answer {n}. {TALK}" for n in range(7)], context_window=20_000, settings=SMALL)
    rpc = pi.rpc(*questions(7), foredeck=True, environment=away)
    assert [entry["summary"][:7] for entry in compactions(rpc.entries())] == ["## Goal"]
