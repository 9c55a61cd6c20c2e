"""What OpenAI chat completions and relatives refuse in a message list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from foredeck_bench.twin.responses_wire import ANSWERED
from foredeck_bench.twin.rules import Finding, Json, check_invented_result, check_list

_SYSTEM = ("system", "developer")
_ROLES = (*_SYSTEM, "user", "assistant", "tool")

_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_BREAKABLE = ("input_text", "input_image", "input_file")
"""Blocks that may end a cached prefix: openai-node 7.59 `resources/responses/responses.d.ts`."""

MIN_OUTPUT_TOKENS = 16
"""pi-ai 1.6.0 `api/openai-responses.js`"""


def check(body: Json) -> Iterator[Finding]:
    """Findings on a request body, worst first."""
    findings = list(check_list(body)) or list(_check_roles(body["messages"]))
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


def _check_roles(messages: list[Any]) -> Iterator[Finding]:
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in _ROLES:
            yield "unknown_role", f"Invalid value: {role!r}. (messages[{index}].role)"


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
