"""OpenAI chat completions and relatives: replies as streamed, and what a message list must be."""

from __future__ import annotations

import json
from collections.abc import Iterator

from foredeck_bench.twin.anthropic import pieces
from foredeck_bench.twin.billing import Usage
from foredeck_bench.twin.script import Failure, Finding, Json, check_invented_result, check_list

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
        "prompt_tokens_details": {"cached_tokens": usage.read, "cache_write_tokens": usage.written},
    }


_SYSTEM = ("system", "developer")
_ROLES = (*_SYSTEM, "user", "assistant", "tool")


def check(body: Json) -> Iterator[Finding]:
    """Findings on a request body, worst first."""
    findings = list(check_list(body, _ROLES))
    if findings:
        yield from findings
        return
    messages: list[Json] = body["messages"]
    talk = [m for m in messages if m["role"] not in _SYSTEM]
    if not talk:
        yield "empty_messages", "messages: nothing but system messages"
    elif talk[0]["role"] != "user":
        yield (
            "first_message",
            "messages: the first message after the system prompt must be a user's",
        )
    yield from check_invented_result(messages)
    for index, message in enumerate(messages):
        yield from _check_content(index, message)
    yield from _check_pairs(messages)


def _check_content(index: int, message: Json) -> Iterator[Finding]:
    content, role = message.get("content"), message["role"]
    if role == "assistant":
        for tool_call in message.get("tool_calls") or ():
            yield from _check_arguments(index, tool_call)
    if role == "tool" or message.get("tool_calls") or message.get("configuration_update"):
        return
    if not content or (isinstance(content, str) and not content.strip()):
        yield "empty_content", f"messages[{index}].content: must not be empty"
    for block in content if isinstance(content, list) else ():
        if block.get("type") == "text" and not str(block.get("text", "")).strip():
            yield "empty_text", f"messages[{index}].content: a text part is empty"


def _check_arguments(index: int, tool_call: Json) -> Iterator[Finding]:
    arguments = tool_call.get("function", {}).get("arguments")
    try:
        valid = isinstance(json.loads(arguments), dict)
    except (TypeError, ValueError):
        valid = False
    if not valid:
        yield "tool_input", f"messages[{index}].tool_calls: arguments are not a JSON object"


def _check_pairs(messages: list[Json]) -> Iterator[Finding]:
    """Every call is answered by `tool` messages at once, and only calls are."""
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            result = str(message.get("tool_call_id"))
            if result in open_calls:
                open_calls.remove(result)
            else:
                yield (
                    "result_without_call",
                    f"messages[{index}]: messages with role 'tool' must be a response to a "
                    f"preceding message with 'tool_calls' ({result})",
                )
            continue
        yield from _unanswered(index, open_calls)
        open_calls = [str(c.get("id")) for c in message.get("tool_calls") or ()]
    yield from _unanswered(len(messages), open_calls)


def _unanswered(index: int, open_calls: list[str]) -> Iterator[Finding]:
    if open_calls:
        yield (
            "call_without_result",
            f"messages[{index}]: an assistant message with 'tool_calls' must be followed by tool "
            f"messages responding to each 'tool_call_id': {', '.join(open_calls)}",
        )
