"""Replies as the Anthropic Messages API streams them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from foredeck_bench.twin.cache import Usage
from foredeck_bench.twin.steps import Failure

Json = dict[str, Any]

_PIECE_CHARS = 400


def events(
    message_id: str, model: str, blocks: list[Json], stop: str, usage: Usage, dropped: list[Json]
) -> Iterator[str]:
    """Server-sent events of one message; `blocks` are in wire shape."""
    start: Json = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**_usage(usage), "output_tokens": 1},
        **_transformed(dropped),
    }
    yield _event("message_start", {"message": start})
    for index, block in enumerate(blocks):
        yield _event("content_block_start", {"index": index, "content_block": _opening(block)})
        for delta in _deltas(block):
            yield _event("content_block_delta", {"index": index, "delta": delta})
        yield _event("content_block_stop", {"index": index})
    ending = {"stop_reason": stop, "stop_sequence": None}
    final = {**_usage(usage), "output_tokens": usage.output}
    yield _event("message_delta", {"delta": ending, "usage": final})
    yield _event("message_stop", {})


def whole(
    message_id: str, model: str, blocks: list[Json], stop: str, usage: Usage, dropped: list[Json]
) -> Json:
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {**_usage(usage), "output_tokens": usage.output},
        **_transformed(dropped),
    }


def error_body(failure: Failure) -> Json:
    """The JSON body of an error answer."""
    details = {"details": {"error_code": failure.code}} if failure.code else {}
    error = {"type": failure.kind, "message": failure.message, **details}
    return {"type": "error", "error": error}


def _event(kind: str, data: Json) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.uncached,
        "cache_read_input_tokens": usage.read,
        "cache_creation_input_tokens": usage.written,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.written - usage.written_long,
            "ephemeral_1h_input_tokens": usage.written_long,
        },
    }


def _transformed(dropped: list[Json]) -> Json:
    """`BetaThinkingDroppedInputTransformation` in the types of anthropic-sdk-typescript 0.129."""
    return {"input_transformations": dropped} if dropped else {}


def _opening(block: Json) -> Json:
    kind = block["type"]
    if kind == "text":
        return {"type": "text", "text": ""}
    if kind == "thinking":
        return {"type": "thinking", "thinking": "", "signature": ""}
    if kind == "tool_use":
        return {**block, "input": {}}
    return block


def _deltas(block: Json) -> Iterator[Json]:
    kind = block["type"]
    if kind == "text":
        for piece in pieces(block["text"]):
            yield {"type": "text_delta", "text": piece}
    elif kind == "thinking":
        for piece in pieces(block["thinking"]):
            yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif kind == "tool_use":
        for piece in pieces(json.dumps(block["input"], ensure_ascii=False)):
            yield {"type": "input_json_delta", "partial_json": piece}


def pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE_CHARS):
        yield text[start : start + _PIECE_CHARS]
