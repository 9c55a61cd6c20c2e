"""Requests of the protocol taken in, and answers given in Pi's shape."""

from __future__ import annotations

from typing import Any

import pytest

from foredeck.context.messages.says import Say
from foredeck.context.state.request import Answer
from foredeck.hosts.pi.edits import apply_edits, to_messages, to_wire
from foredeck.hosts.pi.requests import to_model, to_outcome, to_request
from foredeck.hosts.protocol import AssembleParams, OutcomeParams
from foredeck.model.messages import KnownMessages


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text, "timestamp": 5}


def texts(messages: list[dict[str, Any]]) -> list[Any]:
    return [message["content"] for message in messages]


# Edits applied


def test_a_string_counts_as_one_block() -> None:
    edits = {0: [{"keep": 0}, {"type": "text", "text": "more"}]}
    (message,) = apply_edits([user("x")], edits, {}, set())
    assert texts([message]) == [[{"type": "text", "text": "x"}, {"type": "text", "text": "more"}]]
    assert message["timestamp"] == 5


def test_inserts_go_before_and_after_and_drops_vanish() -> None:
    messages = [user("a"), user("b")]
    inserts = {0: [user("first")], 1: [user("between")], 2: [user("last")]}
    sent = apply_edits(messages, {}, inserts, {1})
    assert texts(sent) == ["first", "a", "between", "last"]


def test_untouched_messages_are_the_hosts_own_objects() -> None:
    messages = [user("a"), user("b")]
    sent = apply_edits(messages, {1: [{"keep": 0}]}, {}, set())
    assert sent[0] is messages[0]
    assert messages[1]["content"] == "b"


def test_a_dropped_message_is_not_edited() -> None:
    assert apply_edits([user("a")], {0: []}, {}, {0}) == []


# Answers on the wire


ANSWER = Answer(
    call=8,
    start=1,
    edits=[(1, [{"keep": 0}])],
    inserts={
        0: [Say("head", [{"type": "text", "text": "head"}])],
        2: [Say("no_result", [], call_id="c", tool="bash")],
    },
    drops=[3],
)


def test_an_answer_is_what_the_protocol_says() -> None:
    wire = to_wire(ANSWER, [10, 20])
    assert (wire["call"], wire["from"]) == (8, 1)
    assert (wire["edits"], wire["drops"]) == ([[1, [{"keep": 0}]]], [3])
    assert [index for index, _ in wire["inserts"]] == [0, 2]


def test_a_message_of_ours_takes_the_time_of_the_one_before_it() -> None:
    (head,) = to_messages(ANSWER.inserts[0], [10, 20], 0)
    (stand_in,) = to_messages(ANSWER.inserts[2], [10, 20], 2)
    assert head == {
        "role": "user",
        "content": [{"type": "text", "text": "head"}],
        "timestamp": 0,
    }
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


def test_each_message_keeps_its_entry_id_where_one_is_known() -> None:
    request = to_request(assemble(user("x"), user("y"), entries=["e1", None]), {})
    assert [item.key.entry for item in request.items] == ["e1", None]


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
    assert model is not None
    assert (model.name, model.window, model.cache_ttl_s) == ("p/m", window, ttl)


def test_no_model_is_no_model() -> None:
    assert to_model(None) is None
    assert to_model({}) is None


def test_an_outcome_without_figures_has_none() -> None:
    outcome = to_outcome(OutcomeParams(call=None, kind="fallback"))
    assert (outcome.call, outcome.edited, outcome.messages, outcome.reason) == (None, 0, 0, "")
