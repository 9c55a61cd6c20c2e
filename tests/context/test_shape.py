"""Stored messages as items: every role, every shape, and what tells two messages apart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.context.messages.shape import is_signed, to_item
from foredeck.model.messages import load_message

TEXT = {"type": "text", "text": "hello"}
CALL = {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}}


@pytest.mark.parametrize(
    ("block", "sealed"),
    [
        ({"type": "thinking", "thinking": "x"}, False),
        ({"type": "thinking", "thinking": "x", "thinkingSignature": ""}, False),
        ({"type": "thinking", "thinking": "x", "thinkingSignature": "c2ln"}, True),
        ({"type": "thinking", "thinking": "", "redacted": True}, True),
        ({"type": "thinking", "thinking": "x", "thinkingSignature": "reasoning_content"}, False),
        ({"type": "text", "text": "x"}, False),
        ({**CALL, "thoughtSignature": "c2ln"}, True),
        (CALL, False),
    ],
)
def test_sealed_reasoning_is_known(block: dict[str, Any], sealed: bool) -> None:
    assert is_signed(block) is sealed
    assert to_item({"role": "assistant", "content": [block]}, None, {}).signed is sealed


BASE = {
    "role": "assistant",
    "content": [TEXT],
    "api": "a",
    "provider": "p",
    "model": "m",
    "stopReason": "stop",
    "timestamp": 1,
}


def address(message: dict[str, Any]) -> str:
    return to_item(message, None, {}).key.address


@pytest.mark.parametrize(
    "more", [{"usage": {"input": 5}}, {"errorMessage": None}, {"responseId": "r"}, {"usage": None}]
)
def test_figures_do_not_make_a_known_message_look_new(more: dict[str, Any]) -> None:
    assert address({**BASE, **more}) == address(BASE)


@pytest.mark.parametrize(
    "more",
    [
        {"content": [{"type": "text", "text": "other"}]},
        {"timestamp": 2},
        {"stopReason": "aborted"},
        {"model": "m2"},
        {"role": "user"},
    ],
)
def test_what_the_model_sees_tells_messages_apart(more: dict[str, Any]) -> None:
    assert address({**BASE, **more}) != address(BASE)


def test_the_order_of_keys_does_not_tell_messages_apart() -> None:
    assert address(dict(reversed(BASE.items()))) == address(BASE)


@given(
    st.sampled_from(["user", "assistant", "toolResult", "custom", "bashExecution", "novel", ""]),
    st.dictionaries(st.text(max_size=8), st.integers(), max_size=6),
)
def test_no_field_of_a_message_is_lost(role: str, fields: dict[str, int]) -> None:
    message = {**fields, "role": role}
    blobs: dict[str, bytes] = {}
    item = to_item(message, None, blobs)
    stored = load_message(item.key.address, blobs.__getitem__)
    details = {} if item.details is None else {"details": item.details}
    assert {**stored, **item.meta, **item.extras, **details} == message


@pytest.mark.parametrize(("tool", "calls"), [("codemode", ["read"]), ("activate", [])])
def test_a_read_inside_a_tool_of_ours_is_no_call(tool: str, calls: list[str]) -> None:
    nested = {"calls": [{"id": "c1/1", "name": "read", "arguments": {"path": "a"}, "status": "ok"}]}
    message = {"role": "toolResult", "toolName": tool, "toolCallId": "c1", "nestedCalls": nested}
    assert [call.tool for call in to_item(message, None, {}).nested] == calls
