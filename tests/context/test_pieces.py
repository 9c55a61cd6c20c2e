"""Folding pieces of assistant messages: what is a piece, and what is left of it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from foredeck.context.messages.items import Item, ToolUse
from foredeck.context.plan.wires import wire_of
from foredeck.context.policies.pieces import folded_blocks, pieces_of
from foredeck.model.messages import MessageKey

OLD, NEW, LONG = "old line\n" * 40, "new line\n" * 50, "x = 1\n" * 100
MARKER = re.compile(r'<activate "?@\d+[^<>\n]{0,60} chars folded>')
"""The form that the shim refuses in a tool call (ts-shim/tool-calls.ts)."""


def call(id: str, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": id, "name": tool, "arguments": arguments}


def assistant(*blocks: dict[str, Any]) -> Item:
    calls = [ToolUse(b["id"], b["name"], b["arguments"]) for b in blocks if b["type"] == "toolCall"]
    return Item(MessageKey("e", "a"), "assistant", list(blocks), calls=calls)


def edit(**more: Any) -> dict[str, Any]:
    return call("c1", "edit", path="a.py", edits=[{"oldText": OLD, "newText": NEW}], **more)


def label(id: str) -> int | None:
    return {"c1": 12, "c2": 13}.get(id)


def test_a_folded_argument_stays_valid_and_the_rest_stays_as_it_was() -> None:
    item = assistant({"type": "text", "text": "Now."}, edit())
    blocks = folded_blocks(item, {2}, label)
    assert blocks[0] == {"keep": 0}
    arguments = blocks[1]["arguments"]
    assert list(arguments) == ["edits", "path"], "as a stored block comes back"
    marker = "<activate @12: 360 chars folded>"
    assert arguments["edits"][0] == {"oldText": marker, "newText": NEW}
    assert MARKER.fullmatch(marker)
    assert item.blocks[1]["arguments"]["edits"][0]["oldText"] == OLD


def said(kind: Any, length: int, **more: Any) -> Item:
    body = ("beginning " + "x" * length)[: length - 4] + " end"
    return Item(MessageKey("e", "a"), kind, [{"type": "text", "text": body, **more}])


def test_the_id_of_an_output_item_signs_nothing_and_stays_with_the_folded_text() -> None:
    id = '{"v":1,"id":"msg_1","phase":"final_answer"}'
    item = said("assistant", 3000, textSignature=id)
    item.meta["api"] = "openai-responses"
    (piece,) = pieces_of(item)
    assert not piece.sealed
    blocks = folded_blocks(item, {piece.slot}, label, lambda _item, _text: "short")
    assert blocks == [{"text": "short", "textSignature": id, "type": "text"}]
    assert list(blocks[0]) == sorted(blocks[0]), "as a stored block comes back"


@pytest.mark.parametrize("arguments", [None, "text", 5, [], {"a": [{"b": LONG}, LONG]}])
def test_any_arguments_can_be_walked(arguments: Any) -> None:
    block = {"type": "toolCall", "id": "c1", "name": "t", "arguments": arguments}
    item = Item(MessageKey("e", "a"), "assistant", [block])
    slots = {piece.slot for piece in pieces_of(item)}
    assert len(slots) == (2 if isinstance(arguments, dict) else 0)
    assert folded_blocks(item, slots, label) is not None


@pytest.mark.parametrize(
    ("api", "provider", "arguments", "thinking"),
    [
        ("anthropic-messages", "anthropic", True, True),
        ("openai-completions", "openai", True, True),
        ("openai-completions", "openrouter", True, False),
        ("openai-codex-responses", "openai-codex", True, False),
        ("google-gemini-cli", "google", True, False),
        ("some-new-wire", "x", False, False),
        ("", "", False, False),
    ],
)
def test_only_wires_that_are_known_let_anything_go(
    api: str, provider: str, arguments: bool, thinking: bool
) -> None:
    wire = wire_of(api, provider)
    assert (wire.arguments, wire.thinking) == (arguments, thinking)
    assert wire_of("bedrock-converse-stream").between_turns
