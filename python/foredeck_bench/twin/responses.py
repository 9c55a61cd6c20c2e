"""OpenAI's Responses API: requests in the shape of chat completions, replies as streamed, and
what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from foredeck_bench.twin.anthropic import pieces
from foredeck_bench.twin.billing import Usage
from foredeck_bench.twin.openai import error_body
from foredeck_bench.twin.script import Finding, Json, content_text

__all__ = ["as_chat", "check_items", "error_body", "events", "item_of", "whole"]

ANSWERED = ("reasoning", "function_call", "custom_tool_call")
"""Items of an answer, messages apart."""

_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_BREAKABLE = ("input_text", "input_image", "input_file")
"""Blocks that may end a cached prefix: openai-node 7.59 `resources/responses/responses.d.ts`."""

MIN_OUTPUT_TOKENS = 16
"""pi-ai 1.6.0 `api/openai-responses.js`"""


def as_chat(body: Json) -> Json:
    """The request with `messages` for `input`: one message per answer, tools as
    `namespace.tool`."""
    messages: list[Json] = []
    tools = list(body.get("tools") or ())
    for item in body.get("input") or ():
        kind = item.get("type")
        if kind in ("function_call_output", "custom_tool_call_output"):
            text = content_text(item.get("output"))
            messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": text})
        elif kind in ANSWERED or item.get("role") == "assistant":
            _add_to_answer(messages, item)
        elif kind == "additional_tools":
            tools += [tool for each in item["tools"] for tool in _in_namespace(each)]
        elif kind == "compaction":
            messages.append({"role": "developer", "content": str(item["encrypted_content"])})
        elif kind == "configuration_update":
            messages.append({"role": "developer", "content": "", "configuration_update": item})
        elif "role" in item:
            messages.append({"role": item["role"], "content": content_text(item.get("content"))})
    fields = {name: body[name] for name in body if name != "input"}
    return {**fields, "tools": tools, "messages": messages}


def _in_namespace(space: Json) -> list[Json]:
    """The tools of a namespace; what is a tool itself stays as it is."""
    if "tools" not in space:
        return [space]
    return [{**tool, "name": f"{space['name']}.{tool['name']}"} for tool in space["tools"]]


def events(
    message_id: str, model: str, blocks: list[Json], stop: str, usage: Usage, dropped: list[Json]
) -> Iterator[str]:
    yield _event("response.created", response={"id": message_id, "model": model})
    for index, block in enumerate(blocks):
        item = item_of(block)
        first_item = {**item, **({"arguments": ""} if item["type"] == "function_call" else {})}
        yield _event("response.output_item.added", output_index=index, item=first_item)
        kind = {"text": "output_text", "tool_use": "function_call_arguments"}.get(block["type"])
        for piece in pieces(_streamed(block)) if kind else ():
            yield _event(f"response.{kind}.delta", output_index=index, delta=piece)
        yield _event("response.output_item.done", output_index=index, item=item)
    response = whole(message_id, model, blocks, stop, usage, dropped)
    ends = "completed" if response["status"] == "completed" else "incomplete"
    yield _event(f"response.{ends}", response=response)


def whole(
    message_id: str, model: str, blocks: list[Json], stop: str, usage: Usage, dropped: list[Json]
) -> Json:
    ended: Json = {"status": "completed"}
    if stop == "max_tokens":
        ended = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    counted = {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.read, "cache_write_tokens": usage.written},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt + usage.output,
    }
    output = [item_of(block) for block in blocks]
    transformations = {"input_transformations": dropped} if dropped else {}
    return {
        "id": message_id,
        "model": model,
        **ended,
        "output": output,
        "usage": counted,
        **transformations,
    }


def _add_to_answer(messages: list[Json], item: Json) -> None:
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": None})
    answer = messages[-1]
    if item.get("type") == "reasoning":
        detail = {"data": item.get("encrypted_content")}
        answer.setdefault("reasoning_details", []).append(detail)
    elif item.get("type") in ANSWERED:
        name = f"{item['namespace']}.{item['name']}" if "namespace" in item else item.get("name")
        arguments = item.get("arguments") or json.dumps({"input": item.get("input")})
        function = {"name": name, "arguments": arguments}
        called = {"id": item.get("call_id"), "type": "function", "function": function}
        answer.setdefault("tool_calls", []).append(called)
    else:
        answer["id"] = item.get("id")
        answer["content"] = (answer["content"] or "") + content_text(item.get("content"))


def item_of(block: Json) -> Json:
    if block["type"] == "tool_use":
        id, arguments = block["id"], _streamed(block)
        namespace, _, name = block["name"].rpartition(".")
        item = {"id": f"fc_{id}", "call_id": id, "name": name, "arguments": arguments}
        item |= {"namespace": namespace} if namespace else {}
        return {"type": "function_call", "status": "completed", **item}
    if block["type"] == "text":
        content = [{"type": "output_text", "text": block["text"], "annotations": []}]
        name = f"msg_{len(block['text'])}"
        return {"type": "message", "id": name, "role": "assistant", "content": content}
    if block["type"] == "compaction":
        return {**block, "id": f"cmp_{len(block['encrypted_content'])}"}
    data = str(block.get("data") or block.get("signature"))
    summary = [{"type": "summary_text", "text": block["thinking"]}] if block.get("thinking") else []
    return {"type": "reasoning", "id": f"rs_{data}", "summary": summary, "encrypted_content": data}


def _streamed(block: Json) -> str:
    if block["type"] == "text":
        return str(block["text"])
    return json.dumps(block["input"], ensure_ascii=False)


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def check_items(body: Json) -> Iterator[Finding]:
    """Findings that only the list of items of a Responses request shows."""
    items = [i for i in body.get("input") or () if isinstance(i, dict)]
    for item, follower in pairwise([*items, {}]):
        follows = follower.get("type") in (*ANSWERED, "message")
        if item.get("type") == "reasoning" and not follows:
            name = item.get("id")
            yield (
                "reasoning_alone",
                f"Item '{name}' of type 'reasoning' was provided without its required following "
                "item.",
            )
    for index, item in enumerate(items):
        yield from _check_item(f"input[{index}]", item)
    if int(body.get("max_output_tokens") or MIN_OUTPUT_TOKENS) < MIN_OUTPUT_TOKENS:
        yield "max_output_tokens", f"max_output_tokens: must be at least {MIN_OUTPUT_TOKENS}"


def _check_item(where: str, item: Json) -> Iterator[Finding]:
    if item.get("type") == "configuration_update":
        effort = (item.get("reasoning") or {}).get("effort")
        if effort not in _EFFORTS and not item.get("text"):
            yield "configuration", f"{where}: a configuration_update must change something"
    for key in ("content", "output"):
        blocks = item.get(key)
        for block in blocks if isinstance(blocks, list) else ():
            marked = isinstance(block, dict) and block.get("prompt_cache_breakpoint")
            if marked and block.get("type") not in _BREAKABLE:
                yield "breakpoint_place", f"{where}: {block.get('type')} takes no cache breakpoint"
