"""Requests of the protocol taken in, and answers given in Pi's shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foredeck.context.plan.ops import Op, Say, Shown, omit
from foredeck.hosts.outgoing import SlotPlan, WireOp, to_ops
from foredeck.hosts.pi import to_model, to_request
from foredeck.hosts.protocol import AssembleParams
from foredeck.model.call_values import CalledModel, PromptTokens, read_stored
from foredeck.model.messages import KnownMessages


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text, "timestamp": 5}


def said(text: str) -> Say:
    return Say("head", [{"type": "text", "text": text}])


# Operations applied


def applied(ops: list[WireOp], messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return SlotPlan().merged(0, ops).apply(messages)


# Operations on the wire


def test_an_answer_is_what_the_protocol_says() -> None:
    blocks = [{"keep": 0}]
    outgoing = [said("head"), Op(), Op(shown=Shown(3)), Op("full", blocks), omit(), omit()]
    (first, *ops) = to_ops(outgoing, lambda _index: 7)
    assert first[0] == "say"
    assert ops == [["keep", 2], ["rewrite", blocks], ["omit", 2]]


def test_a_message_of_ours_takes_the_time_of_the_one_before_it() -> None:
    times = [10, 20]
    answered = Say("no_result", [], call_id="c", tool="bash")
    ops = to_ops([said("head"), Op(), Op(), answered], times.__getitem__)
    head, stand_in = (value for name, value in ops if name == "say")
    assert head == {"role": "user", "content": [{"type": "text", "text": "head"}], "timestamp": 0}
    assert stand_in["timestamp"] == 20
    assert (stand_in["role"], stand_in["toolCallId"], stand_in["toolName"]) == (
        "toolResult",
        "c",
        "bash",
    )
    assert stand_in["isError"] is True


# Requests


def assemble(*messages: dict[str, Any], **more: Any) -> AssembleParams:
    """The parameters of a request for these messages."""
    entries = [None] * len(messages)
    params = {"session": "s", "keep": 0, "messages": [*messages], "entries": entries, "time_ms": 5}
    return AssembleParams.model_validate({**params, **more})


def test_a_request_without_optional_members_is_understood() -> None:
    request = to_request(assemble(user("x")), {})
    assert (request.keep, len(request.items), request.time_ms) == (0, 1, 5)
    assert (request.model, request.outcomes, request.system, request.tools) == (
        None,
        [],
        None,
        None,
    )


def test_times_with_fractions_are_taken_as_whole_milliseconds() -> None:
    request = to_request(assemble(user("x"), time_ms=7.9, warmed_ms=3.2), {})
    assert (request.time_ms, request.warmed_ms) == (7, 3)


def test_the_hosts_messages_are_passed_on_uncopied() -> None:
    message = user("x")
    assert assemble(message).messages[0] is message


def test_messages_that_are_stored_are_not_packed_again() -> None:
    blobs: dict[str, bytes] = {}
    known = to_request(assemble(user("x")), blobs).items[0].key.address
    assert set(blobs) == {known}
    more: dict[str, bytes] = {}
    to_request(assemble(user("x"), user("y")), more, KnownMessages({known}, {}))
    assert known not in more
    assert len(more) == 1


@pytest.mark.parametrize(
    ("record", "window", "ttl"),
    [
        ({"contextWindow": 1000, "promptCache": {"short": 300}}, 1000, 300.0),
        ({"contextWindow": 0, "promptCache": {"short": 0}}, None, None),
        ({"contextWindow": "many", "promptCache": 5}, None, None),
        ({}, None, None),
    ],
)
def test_a_models_record_is_read_as_far_as_it_can_be(
    record: dict[str, Any], window: int | None, ttl: float | None
) -> None:
    model = to_model({"provider": "p", "id": "m", **record})
    assert (model.name, model.window, model.cache_ttl_s) == ("p/m", window, ttl)


def test_a_longer_prompt_has_the_prices_of_its_tier() -> None:
    tier = {"inputTokensAbove": 1000, "input": 4, "cacheRead": 0.4, "cacheWrite": 0}
    cost = {"input": 2, "cacheRead": 0.2, "cacheWrite": 2.5, "tiers": [tier, {"input": 7}, None]}
    model = to_model({"provider": "p", "id": "m", "cost": cost})
    called = read_stored(CalledModel, json.loads(json.dumps(model.called.to_record())))
    assert PromptTokens(500, 400, 100).cost(called) == 500 * 0.1 + 400 * 1.25 + 100
    assert PromptTokens(500, 401, 100).cost(called) == 500 * 0.2 + 401 * 2 + 100 * 2
