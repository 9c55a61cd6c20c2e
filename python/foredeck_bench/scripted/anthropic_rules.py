"""What the Anthropic Messages API refuses in a message list, reasoning blocks apart.

Reasoning has a memory (what was issued, and after which bytes), so it stands in `reasoning`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from foredeck_bench.scripted.rules import Finding, Json, check_invented_result, check_list

MAX_MARKERS = 4

_ROLES = ("user", "assistant", "system")
_BLOCKS = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
    "system": {"text", "tool_addition", "tool_removal"},
}


def check(body: Json) -> Iterator[Finding]:
    """All findings on a request body, worst first; an empty iterator means that it is accepted."""
    findings = list(check_list(body)) or list(_check_roles(body["messages"]))
    if findings:
        yield from findings
        return
    messages: list[Json] = body["messages"]
    if messages[0]["role"] != "user":
        yield "first_message", "messages: first message must use the user role"
    yield from check_invented_result(messages)
    for index, message in enumerate(messages):
        if is_effort_marker(message):
            continue
        yield from _check_content(index, message)
        if message["role"] == "system":
            yield from _check_place(index, messages)
    yield from _check_pairs(messages)
    yield from _check_markers(body)


def is_effort_marker(message: Json) -> bool:
    """Whether this message says nothing but how much effort is made from here on.

    platform.claude.com/docs/en/build-with-claude/effort-per-message
    """
    effort = (message.get("output_config") or {}).get("effort")
    return message["role"] == "system" and not message.get("content") and bool(effort)


def _check_place(index: int, messages: list[Json]) -> Iterator[Finding]:
    """A system message with content follows a user's, other system messages between left out.

    platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
    """
    before = [m["role"] for m in messages[:index] if m["role"] != "system"]
    if before[-1:] != ["user"]:
        yield "system_place", f"messages.{index}: a system message must follow a user message"


def _check_roles(messages: list[Any]) -> Iterator[Finding]:
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in _ROLES:
            yield "unknown_role", f"messages.{index}: role {role!r} is not 'user' or 'assistant'"


def _check_content(index: int, message: Json) -> Iterator[Finding]:
    where = f"messages.{index}"
    content = message.get("content")
    if isinstance(content, str):
        if not content.strip():
            yield "empty_content", f"{where}: text content must be non-empty"
        return
    if not isinstance(content, list) or not content:
        yield "empty_content", f"{where}: all messages must have non-empty content"
        return
    for position, block in enumerate(content):
        yield from _check_block(f"{where}.content.{position}", str(message["role"]), block)


def _check_block(where: str, role: str, block: Any) -> Iterator[Finding]:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind not in _BLOCKS[role]:
        yield "unknown_block", f"{where}: block type {kind!r} is not allowed for role {role!r}"
    elif kind == "text":
        yield from _check_text(where, block)
    elif kind == "tool_use":
        if not isinstance(block.get("input"), dict):
            yield "tool_input", f"{where}.tool_use.input: must be an object"
        if not block.get("name") or not block.get("id"):
            yield "tool_use", f"{where}.tool_use: id and name are required"
    elif kind == "tool_result":
        yield from _check_result(where, block)


def _check_text(where: str, block: Json) -> Iterator[Finding]:
    text = block.get("text")
    if not isinstance(text, str) or not text.strip():
        yield "empty_text", f"{where}: text content blocks must contain non-whitespace text"


def _check_result(where: str, block: Json) -> Iterator[Finding]:
    content = block.get("content")
    if block.get("is_error") and not content:
        yield "empty_error", f"{where}.tool_result: content cannot be empty if `is_error` is true"
    if isinstance(content, list):
        for position, item in enumerate(content):
            if isinstance(item, dict) and item.get("type") == "text":
                yield from _check_text(f"{where}.content.{position}", item)


def _ids(message: Json | None, role: str, kind: str, key: str) -> list[str]:
    if message is None or message.get("role") != role:
        return []
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [str(b.get(key)) for b in blocks if isinstance(b, dict) and b.get("type") == kind]


def _check_pairs(messages: list[Json]) -> Iterator[Finding]:
    """Every call has its result in the very next message, and every result its call before it."""
    seen: set[str] = set()
    before: Json | None = None
    for index, message in enumerate(messages):
        after = messages[index + 1] if index + 1 < len(messages) else None
        uses = _ids(message, "assistant", "tool_use", "id")
        yield from _check_unique(index, uses, seen)
        answered = _ids(after, "user", "tool_result", "tool_use_id")
        lost = [use for use in uses if use not in answered]
        if lost:
            yield (
                "call_without_result",
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks "
                f"immediately after: {', '.join(lost)}",
            )
        yield from _check_results_of(index, message, _ids(before, "assistant", "tool_use", "id"))
        before = message


def _check_unique(index: int, uses: list[str], seen: set[str]) -> Iterator[Finding]:
    for use in uses:
        if use in seen:
            yield "duplicate_call", f"messages.{index}: `tool_use` ids must be unique: {use}"
        seen.add(use)


def _check_results_of(index: int, message: Json, expected: list[str]) -> Iterator[Finding]:
    found = _ids(message, "user", "tool_result", "tool_use_id")
    for result in found:
        if result not in expected:
            yield (
                "result_without_call",
                f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{result}. Each must have its `tool_use` block in the previous message",
            )
    if len(set(found)) != len(found):
        yield "duplicate_result", f"messages.{index}: each tool_use must have a single result"
    kinds = [b.get("type") for b in message["content"]] if found else []
    if found and "tool_result" in kinds[len(found) :]:
        yield "result_not_first", f"messages.{index}: tool_result blocks must come first"


def _check_markers(body: Json) -> Iterator[Finding]:
    blocks = [b for part in ("tools", "system") for b in _list(body.get(part))]
    blocks += [b for message in body["messages"] for b in _list(message.get("content"))]
    marked = [b for b in blocks if isinstance(b, dict) and b.get("cache_control")]
    if len(marked) > MAX_MARKERS:
        yield (
            "too_many_markers",
            f"A maximum of {MAX_MARKERS} blocks with cache_control may be provided. "
            f"Found {len(marked)}.",
        )
    for block in marked:
        if block.get("type") in ("thinking", "redacted_thinking"):
            yield "marked_reasoning", "cache_control cannot be set for thinking blocks"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
