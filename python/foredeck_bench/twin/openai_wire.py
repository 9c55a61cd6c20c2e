"""Replies as OpenAI chat completions stream them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from foredeck_bench.twin.anthropic_wire import pieces
from foredeck_bench.twin.cache import Usage
from foredeck_bench.twin.steps import Failure

Json = dict[str, Any]

_STOP = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length"}


def events(
    message_id: str, model: str, blocks: list[Json], stop: str, usage: Usage, _dropped: list[Json]
) -> Iterator[str]:
    """Server-sent events of one message; `blocks` are in Anthropic's shape."""
    head = {"id": message_id, "object": "chat.completion.chunk", "created": 0, "model": model}
    for delta in ({"role": "assistant", "content": ""}, *_deltas(blocks)):
        yield _chunk(head, [{"index": 0, "delta": delta, "finish_reason": None}])
    yield _chunk(head, [{"index": 0, "delta": {}, "finish_reason": _STOP.get(stop, stop)}])
    yield _chunk({**head, "usage": _usage(usage)}, [])
    yield "data: [DONE]\n\n"


def whole(
    message_id: str, model: str, blocks: list[Json], stop: str, usage: Usage, _dropped: list[Json]
) -> Json:
    texts = {"text": "", "thinking": ""}
    calls: list[Json] = []
    sealed = [encrypted(b["data"]) for b in blocks if b["type"] == "redacted_thinking"]
    for block in blocks:
        if block["type"] == "redacted_thinking":
            continue
        if block["type"] == "tool_use":
            arguments = json.dumps(block["input"], ensure_ascii=False)
            function = {"name": block["name"], "arguments": arguments}
            calls.append({"id": block["id"], "type": "function", "function": function})
        else:
            texts[block["type"]] += block[block["type"]]
    message: Json = {"role": "assistant", "content": texts["text"] or None}
    message |= {"tool_calls": calls} if calls else {}
    message |= {"reasoning_details": sealed} if sealed else {}
    choice = {"index": 0, "message": message, "finish_reason": _STOP.get(stop, stop)}
    head = {"id": message_id, "object": "chat.completion", "created": 0, "model": model}
    return {**head, "choices": [choice], "usage": _usage(usage)}


def error_body(failure: Failure) -> Json:
    """The JSON body of an error answer."""
    return {"error": {"message": failure.message, "type": failure.kind, "code": failure.status}}


def encrypted(data: str) -> Json:
    """Encrypted reasoning over chat completions, as routers pass it on."""
    return {"type": "reasoning.encrypted", "data": data, "id": f"rs_{data}", "index": 0}


def _chunk(head: Json, choices: list[Json]) -> str:
    return f"data: {json.dumps({**head, 'choices': choices})}\n\n"


def _deltas(blocks: list[Json]) -> Iterator[Json]:
    calls = 0
    for block in blocks:
        if block["type"] == "text":
            for piece in pieces(block["text"]):
                yield {"content": piece}
        elif block["type"] == "thinking":
            for piece in pieces(block["thinking"]):
                yield {"reasoning_content": piece}
        elif block["type"] == "redacted_thinking":
            yield {"reasoning_details": [encrypted(block["data"])]}
        elif block["type"] == "tool_use":
            yield _call_start(calls, block)
            for piece in pieces(json.dumps(block["input"], ensure_ascii=False)):
                yield {"tool_calls": [{"index": calls, "function": {"arguments": piece}}]}
            calls += 1


def _call_start(index: int, block: Json) -> Json:
    function = {"name": block["name"], "arguments": ""}
    call = {"index": index, "id": block["id"], "type": "function", "function": function}
    return {"tool_calls": [call]}


def _usage(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.read,
            "cache_write_tokens": usage.written,
        },
    }
