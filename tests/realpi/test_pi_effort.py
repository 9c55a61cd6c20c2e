"""Models that think with an effort: Pi says behind the newest message how much the next answer
takes, and sends Anthropic only what is new of a conversation."""

from __future__ import annotations

import re
from typing import Any

import pytest

from foredeck_bench.twin.script import Api, Reply, Step, Text, Thinking, call
from harness import Pi
from observed import (
    assert_foreseen,
    calls_of,
    command_text,
    notified,
    session_of,
    stored,
    wait_for_request,
)
from test_pi_asking import blocks, doctor, ready, without_end
from test_pi_cache import markers, parallel

Json = dict[str, Any]

THINKING_ROOM = 2048
"""Tokens for thinking with the least effort of the scripted model."""


def effort(level: str) -> Json:
    """What Pi puts behind the newest message."""
    return {"role": "system", "content": [], "output_config": {"effort": level}}


def test_a_question_at_the_end_of_the_prompt_stands_before_the_effort(pi: Pi) -> None:
    model = pi.serve([call("bash", command="seq 2000"), "worked", "more"], side=ready)
    rpc = pi.rpc("go", foredeck=True, arguments=["--thinking", "high"])
    found = doctor(rpc)
    assert found["warm cache"] == ("ok", "would be read: the prompt of call 2")
    assert "and thinks about it (at least low)" in found["model"][1]
    assert "sends one word, for about $0.0" in found["question"][1]
    last = model.requests[-1]
    assert last.request.messages[-1] == effort("high")
    status, text = doctor(rpc, "ask")["question"]
    assert (status, text.split(";")[0]) == ("ok", 'answered "ready"')
    asked = model.requests[-1]
    assert asked.request.messages[-1] == effort("low"), "the least, behind what the cache holds"
    assert asked.request.body["max_tokens"] == 100 + THINKING_ROOM
    assert without_end(asked.request.body) == without_end(last.request.body)
    assert len(asked.request.messages) == len(last.request.messages)
    *earlier, (role, question) = blocks(asked)
    assert (role, "check that you can be reached" in question["text"]) == ("user", True)
    assert earlier == blocks(last)
    assert asked.usage.read > 0.9 * asked.usage.prompt
    assert asked.usage.written == 0
    rpc.prompt("go on")
    after = model.requests[-1]
    assert after.thread["type"] == "continue", "the question was asked beside the thread"
    assert after.usage.read > 0.9 * asked.usage.read


@pytest.mark.parametrize("api", ["anthropic-messages", "openai-responses"])
def test_a_stop_before_the_first_token_is_no_change_by_others(pi: Pi, api: Api) -> None:
    steps: list[Step] = [call("bash", command="seq 2000"), "worked"]
    late = Reply((Text("late"),), delay_s=120)
    model = pi.serve([*steps, late, "on it", "done"], api=api, side=ready)
    rpc = pi.rpc("go", foredeck=True)
    rpc.send("prompt", message="look at it")
    wait_for_request(model, 3)
    rpc.abort()
    rpc.prompt("look at the other one")
    rpc.prompt("go on")
    assert not [text for text in notified(rpc) if "extension changes" in text]
    status, text = doctor(rpc)["warm cache"]
    if api == "anthropic-messages":
        assert status == "ok", text
        assert doctor(rpc, "ask")["question"][0] == "ok"
    else:
        assert text == f"would not be read: prompts are not asked again over {api}"


LONG: list[Step] = [[call("bash", command="seq 2000")], parallel(25), "done"]


def test_one_more_marker_is_set_in_a_thread_that_then_begins_anew(pi: Pi) -> None:
    plain = pi.serve(LONG)
    assert pi.print("go").code == 0
    before = plain.requests[-1]
    assert before.usage.read < before.usage.ideal
    model = pi.serve([*LONG, "on"])
    rpc = pi.rpc("go", foredeck=True)
    last = model.requests[-1]
    assert last.thread == {"type": "create"}
    assert last.usage.read == last.usage.ideal
    assert len(markers(last)) <= 4
    assert "2000" in str(markers(last)[-2]["content"])
    assert last.request.messages[-1]["role"] == "system"
    rpc.prompt("go on")
    kinds = [(sent.thread or {}).get("type") for sent in model.requests]
    assert kinds == ["create", "continue", "create", "create"]
    with stored(pi) as store:
        records = calls_of(store, session_of(store))
    for record, sent in zip(records, model.requests, strict=True):
        assert_foreseen(record, sent)


def test_off_says_what_it_costs_before_it_happens(pi: Pi) -> None:
    commands = ["seq 2000", *(f"echo {n}" for n in range(11))]
    work: list[Step] = [[Thinking("so"), call("bash", command=each)] for each in commands]
    model = pi.serve([*work, "worked", "plain", "managed"])
    rpc = pi.rpc("go", foredeck=True)
    shown: list[str] = []
    is_wanted = False

    def answer(asked: Json) -> Json:
        shown.append(asked["message"])
        return {"confirmed": is_wanted}

    rpc.dialogs = answer
    assert command_text(rpc, "/foredeck off") == "foredeck stays on."
    said = re.fullmatch(
        r"The next call reads ([\d,]+) tokens anew that are in the provider's cache now "
        r"\(\$0\.\d{4}\) and loses the reasoning behind 11 answers\.",
        shown[0],
    )
    assert said
    is_wanted = True
    rpc.command("/foredeck off")
    assert shown[1] == shown[0]
    assert notified(rpc)[-1] == (
        f"foredeck is off: the model sees everything as Pi has it. {shown[0]} "
        "/foredeck on brings it back."
    )
    rpc.prompt("go on")
    before, plain = (sent.usage for sent in model.requests[-2:])
    lost = before.read + before.written - plain.read
    assert int(said[1].replace(",", "")) == pytest.approx(lost, rel=0.3)
    rpc.command("/foredeck off")
    assert len(shown) == 2, "it is off already"
    rpc.command("/foredeck on")
    rpc.prompt("go on")
    managed = model.requests[-1].usage
    assert managed.read == managed.ideal, "on costs nothing by itself"
    assert managed.read > 0.9 * plain.prompt
