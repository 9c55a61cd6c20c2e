"""The Anthropic Messages API: replies as streamed, refusals of lists, and threads that it keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from foredeck_bench.twin.billing import Usage
from foredeck_bench.twin.script import Failure, Finding, Json, check_invented_result, check_list

_PIECE_CHARS = 400


def events(
    message_id: str, model: str, blocks: list[Json], stop: str, usage: Usage, dropped: list[Json]
) -> Iterator[str]:
    """Server-sent events of one message; `blocks` are in wire shape."""
    begun = replace(usage, output=1)
    start = {**whole(message_id, model, [], stop, begun, dropped), "stop_reason": None}
    yield _event("message_start", {"message": start})
    for index, block in enumerate(blocks):
        yield _event("content_block_start", {"index": index, "content_block": _opening(block)})
        for delta in _deltas(block):
            yield _event("content_block_delta", {"index": index, "delta": delta})
        yield _event("content_block_stop", {"index": index})
    ending = {"stop_reason": stop, "stop_sequence": None}
    yield _event("message_delta", {"delta": ending, "usage": _usage(usage)})
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
        "usage": _usage(usage),
        # `BetaThinkingDroppedInputTransformation` in the types of anthropic-sdk-typescript 0.129.
        **({"input_transformations": dropped} if dropped else {}),
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
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.read,
        "cache_creation_input_tokens": usage.written,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.written - usage.written_long,
            "ephemeral_1h_input_tokens": usage.written_long,
        },
    }


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


MAX_MARKERS = 4
"""platform.claude.com/docs/en/build-with-claude/prompt-caching"""

EFFORT_BETA = "mid-conversation-output-config-2026-07-01"
CLIENTS_EFFORT_BETA = "per-turn-control-2026-07-01"
"""Claude Code 2.1.332's name for the same."""
BINDING_BETA = "thinking-binding-controls-2026-08-01"
INLINE_TOOLS_BETA = "inline-tools-2026-09-15"
TOOL_CHANGES_BETA = "mid-conversation-tool-changes-2026-07-01"
"""Headers that allow what they name: pi-ai 1.6.0 `api/anthropic-messages.js`; the last one, for
tools by reference, @langchain/anthropic 1.5.12."""

EFFORTS = ("low", "medium", "high", "xhigh", "max")
"""`BetaSystemMessageOutputConfig` in the types of anthropic-sdk-typescript 0.129."""

_ROLES = ("user", "assistant", "system")
_BLOCKS = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
    "system": {"text", "tool_addition", "tool_removal"},
}


def check(body: Json) -> Iterator[Finding]:
    """Findings on a request body, worst first."""
    findings = list(check_list(body, _ROLES))
    if findings:
        yield from findings
        return
    messages: list[Json] = body["messages"]
    if messages[0]["role"] != "user":
        yield "first_message", "messages: first message must use the user role"
    last = [m["role"] for m in messages if m["role"] != "system"]
    if last[-1:] == ["assistant"]:
        yield "prefill", "The conversation must end with a user message."
    yield from check_invented_result(messages)
    for index, message in enumerate(messages):
        if is_effort_marker(message):
            continue
        yield from _check_content(index, message)
        if message["role"] == "system":
            yield from _check_place(index, messages)
    yield from _check_pairs(messages)
    yield from _check_tool_changes(body)
    yield from _check_markers(body)
    yield from _check_thinking(body)
    yield from _check_betas(body)


def is_effort_marker(message: Json) -> bool:
    effort = (message.get("output_config") or {}).get("effort")
    return message["role"] == "system" and not message.get("content") and effort in EFFORTS


def _check_place(index: int, messages: list[Json]) -> Iterator[Finding]:
    """A system message with content follows a user's, other system messages between left out.

    platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
    """
    before = [m["role"] for m in messages[:index] if m["role"] != "system"]
    if before[-1:] != ["user"]:
        yield "system_place", f"messages.{index}: a system message must follow a user message"


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
    kinds = {item.get("type") for item in content} if isinstance(content, list) else set()
    if block.get("is_error") and kinds - {"text"}:
        # pi-ai 1.6.0 `api/anthropic-messages.js`, `convertMessages`.
        yield "error_content", f"{where}.tool_result: an error may hold text only"
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
    ids_so_far: set[str] = set()
    before: Json | None = None
    for index, message in enumerate(messages):
        after = messages[index + 1] if index + 1 < len(messages) else None
        uses = _ids(message, "assistant", "tool_use", "id")
        yield from _check_unique(index, uses, ids_so_far)
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
    ids = _ids(message, "user", "tool_result", "tool_use_id")
    for result in ids:
        if result not in expected:
            yield (
                "result_without_call",
                f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{result}. Each must have its `tool_use` block in the previous message",
            )
    if len(set(ids)) != len(ids):
        yield "duplicate_result", f"messages.{index}: each tool_use must have a single result"
    kinds = [b.get("type") for b in message["content"]] if ids else []
    if ids and "tool_result" in kinds[len(ids) :]:
        yield "result_not_first", f"messages.{index}: tool_result blocks must come first"


def _check_tool_changes(body: Json) -> Iterator[Finding]:
    """What is added or withdrawn by name must be there.

    `BetaRequestToolAdditionBlock` in the types of anthropic-sdk-typescript 0.129; that a list of
    deferred tools alone is refused, pi-ai 1.6.0 `api/anthropic-messages.js`, `buildParams`.
    """
    tools = [tool for tool in _list(body.get("tools")) if isinstance(tool, dict)]
    if tools and all(tool.get("defer_loading") for tool in tools):
        yield "all_deferred", "tools: at least one tool must not be deferred"
    names = {tool.get("name") for tool in tools}
    for index, message in enumerate(body["messages"]):
        for block in _list(message.get("content")) if message["role"] == "system" else ():
            tool = block.get("tool") or {}
            if tool.get("type") == "tool_definition":
                names.add(tool["definition"].get("name"))
            elif block.get("type") != "text" and tool.get("name") not in names:
                yield "unknown_tool", f"messages.{index}: no tool {tool.get('name')!r} is declared"


def _check_markers(body: Json) -> Iterator[Finding]:
    blocks = [b for part in ("tools", "system") for b in _list(body.get(part))]
    blocks += [b for message in body["messages"] for b in _list(message.get("content"))]
    marked = [b for b in [*blocks, body] if isinstance(b, dict) and b.get("cache_control")]
    if len(marked) > MAX_MARKERS:
        yield (
            "too_many_markers",
            f"A maximum of {MAX_MARKERS} blocks with cache_control may be provided. "
            f"Found {len(marked)}.",
        )
    lives = [b["cache_control"].get("ttl", "5m") for b in marked]
    if lives != sorted(lives):
        yield "marker_order", "a cache_control of 1h must come before those of 5m"
    for block in marked:
        if block.get("type") in ("thinking", "redacted_thinking"):
            yield "marked_reasoning", "cache_control cannot be set for thinking blocks"


def _check_thinking(body: Json) -> Iterator[Finding]:
    """pi-ai 1.6.0 `api/anthropic-messages.js`, `buildParams`: no binding without thinking."""
    thinking = body.get("thinking") or {}
    if thinking.get("type") == "disabled" and "block_binding" in thinking:
        yield "binding_disabled", "thinking.block_binding: not allowed where thinking is disabled"
    if thinking.get("type") == "enabled" and thinking.get("budget_tokens", 0) < 1024:
        yield "small_budget", "thinking.budget_tokens: must be at least 1024"


def check_always_thinks(body: Json) -> Iterator[Finding]:
    """Findings on a request to a model whose thinking cannot be turned off:
    platform.claude.com/docs/en/build-with-claude/adaptive-thinking; `thinkingLevelMap.off` of its
    record in pi-ai 1.6.0."""
    kind = (body.get("thinking") or {}).get("type", "adaptive")
    if kind != "adaptive":
        yield "thinking_off", f"thinking.type: {kind!r} is not supported by this model"


def _check_betas(body: Json) -> Iterator[Finding]:
    betas = body.get("betas") or ()
    systems = [m for m in body["messages"] if m["role"] == "system"]
    changes = [b for m in systems for b in _list(m.get("content")) if b.get("type") != "text"]
    by_value = [b for b in changes if (b.get("tool") or {}).get("type") == "tool_definition"]
    needed = {
        EFFORT_BETA: any(m.get("output_config") for m in systems),
        BINDING_BETA: "block_binding" in (body.get("thinking") or {}),
        INLINE_TOOLS_BETA: bool(by_value),
    }
    same = {EFFORT_BETA: {EFFORT_BETA, CLIENTS_EFFORT_BETA}}
    for beta, is_needed in needed.items():
        if is_needed and not same.get(beta, {beta}) & set(betas):
            yield "beta_missing", f"Extra inputs are not permitted without the beta {beta}"
    if changes and not by_value and not {INLINE_TOOLS_BETA, TOOL_CHANGES_BETA} & set(betas):
        yield "beta_missing", f"tool changes need the beta {TOOL_CHANGES_BETA}"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# Message threads: conversations that the server keeps. Sources:
# platform.claude.com/docs/en/build-with-claude/message-threads; pi-ai 1.6.0
# `api/anthropic-messages.js` (`hashThreadPrefix`, `NEW_THREAD_ERRORS`).

THREADS_BETA = "message-threads-2026-08-12"

LIFETIME_S = 300.0
"""A thread expires so long after the last answer that was stored in it."""

_HELD = ("system", "tools")
"""What a thread has from its `create`."""

_FIXED = ("model", "thinking", "output_config", "tool_choice", "betas", "fallbacks")
"""What a `continue` must repeat unchanged."""


@dataclass(frozen=True, slots=True)
class ThreadRefusal(Exception):
    """The refusal of a thread, with HTTP status, `error_code` and words."""

    status: int
    code: str
    message: str


@dataclass(slots=True)
class _Turn:
    """A conversation up to one answer."""

    body: Json
    at_s: float
    continued: bool = False


class Threads:
    """One account's conversations, by their last answer's id."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}

    def rebuild(self, body: Json, now_s: float) -> Json:
        """The whole request behind `body`. Raises ThreadRefusal."""
        thread = body.get("thread")
        if thread is None:
            return body
        if THREADS_BETA not in (body.get("betas") or ()):
            raise ThreadRefusal(400, "", "thread: Extra inputs are not permitted")
        whole = {name: body[name] for name in body if name != "thread"}
        if thread.get("type") == "create":
            return whole
        turn = self._turns.get(str(thread.get("previous_message_id")))
        if turn is None or now_s - turn.at_s > LIFETIME_S:
            raise ThreadRefusal(404, "thread_not_found", "thread: not found or expired")
        if turn.continued:
            raise ThreadRefusal(
                400, "thread_already_continued", "thread: this answer has already been continued"
            )
        differing = [name for name in _FIXED if body.get(name) != turn.body.get(name)]
        differing += [name for name in _HELD if name in body and body[name] != turn.body.get(name)]
        if differing:
            raise ThreadRefusal(
                400,
                "thread_fingerprint_mismatch",
                f"thread: differing field(s): {', '.join(differing)}",
            )
        turn.continued = True
        fields = {name: turn.body[name] for name in _HELD if name in turn.body}
        return {**whole, **fields, "messages": [*turn.body["messages"], *body["messages"]]}

    def store(self, message_id: str, whole: Json, blocks: list[Json], now_s: float) -> None:
        """Keeps the conversation that this answer ends."""
        answer = {"role": "assistant", "content": blocks}
        messages = [_unmarked(message) for message in whole["messages"]]
        body = {**whole, "messages": [*messages, answer]}
        self._turns[message_id] = _Turn(body, now_s)


def _unmarked(message: Json) -> Json:
    """A message without cache markers, on the assumption that they hold for one request only."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    blocks = [{k: v for k, v in block.items() if k != "cache_control"} for block in content]
    return {**message, "content": blocks}
