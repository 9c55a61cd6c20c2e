"""Messages of Anthropic's API. A message of the user's may hold the results of several tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from foredeck.context.messages.items import text_block
from foredeck.embedded.format import (
    CountedTokens,
    Message,
    ToolRequest,
    UnknownMessage,
    arguments_in,
    as_they_came,
    blocks_of,
    definition_of,
    input_of,
    kept,
    released,
    result_message,
    with_marker,
)


class AnthropicMessages:
    """The format `anthropic`."""

    api = "anthropic-messages"

    def to_engine(self, message: Mapping[str, Any], names: Mapping[str, str]) -> list[Message]:
        blocks = _blocks(message.get("content"))
        if message.get("role") == "assistant":
            return [self._assistant(message, blocks)]
        if message.get("role") == "system":  # in mid-chat: the program's own words
            content = [_to_engine(block) for block in blocks]
            return [{"role": "custom", "customType": "system", "content": content}]
        if message.get("role") != "user":
            raise UnknownMessage(f"a message with the role {message.get('role')!r} cannot be read")
        results = [_result(block, names) for block in blocks if block["type"] == "tool_result"]
        rest = [_to_engine(block) for block in blocks if block["type"] != "tool_result"]
        return [*results, *([{"role": "user", "content": rest}] if rest or not results else [])]

    def _assistant(self, message: Mapping[str, Any], blocks: list[dict[str, Any]]) -> Message:
        uses = any(block["type"] == "tool_use" for block in blocks)
        stop = message.get("stop_reason")
        return {
            "role": "assistant",
            "content": [_to_engine(block) for block in blocks],
            "stopReason": "toolUse" if uses else "length" if stop == "max_tokens" else "stop",
        }

    def from_engine(self, group: Sequence[Message], original: Mapping[str, Any] | None) -> Message:
        is_answer = any(message["role"] == "assistant" for message in group)
        role = (original or {}).get("role") or ("assistant" if is_answer else "user")
        had = _blocks((original or {}).get("content"))
        results = [block for block in had if block["type"] == "tool_result"]
        content: list[dict[str, Any]] = []
        for message in group:
            if message["role"] == "toolResult":
                content.append(_tool_result(message, results))
            else:
                others = [block for block in had if block["type"] != "tool_result"]
                content += as_they_came(blocks_of(message), others, _to_engine, _from_engine)
        # Where the loop marks the end of what the provider shall cache, the changed message keeps
        # it.
        return {**(original or {}), "role": role, "content": with_marker(content, had, _UNMARKED)}

    def is_system(self, message: Mapping[str, Any]) -> bool:
        del message
        return False

    def tool(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "name": definition["name"],
            "description": definition["description"],
            "input_schema": definition["parameters"],
        }

    def to_definition(self, tool: Mapping[str, Any]) -> dict[str, Any]:
        return definition_of(tool, "input_schema")

    def tool_uses(self, message: Mapping[str, Any]) -> list[ToolRequest]:
        return [
            ToolRequest(
                str(block.get("id") or ""),
                str(block.get("name") or ""),
                arguments_in(block.get("input")),
            )
            for block in _blocks(message.get("content"))
            if block["type"] == "tool_use"
        ]

    def result(self, call: ToolRequest, text: str, *, failed: bool) -> dict[str, Any]:
        block = {"type": "tool_result", "tool_use_id": call.id, "content": text}
        return {**block, "is_error": True} if failed else block

    def usage(self, reported: Mapping[str, Any]) -> CountedTokens:
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        return CountedTokens(*(int(reported.get(name) or 0) for name in names))


_UNMARKED = ("thinking", "redacted_thinking")
"""Blocks that the API lets no request mark."""


def _blocks(content: Any) -> list[dict[str, Any]]:
    """Raises `UnknownMessage` for what is no content."""
    if isinstance(content, str):
        return [text_block(content)] if content else []
    if content is not None and not isinstance(content, Sequence):
        raise UnknownMessage(f"content that is a {type(content).__name__} cannot be read")
    for number, block in enumerate(content or ()):
        if not isinstance(block, Mapping) or not isinstance(block.get("type"), str):
            raise UnknownMessage(f"block {number} is no object with a type")
    return [dict(block) for block in content or ()]


def _result(block: Mapping[str, Any], names: Mapping[str, str]) -> Message:
    content = [_to_engine(each) for each in _blocks(block.get("content"))]
    id, failed = str(block.get("tool_use_id") or ""), bool(block.get("is_error"))
    return result_message(id, names, content, failed=failed)


def _tool_result(message: Message, had: list[dict[str, Any]]) -> dict[str, Any]:
    """A changed result; `had`: the loop's, whose own part is kept."""
    id = message["toolCallId"]
    at = next((n for n, b in enumerate(had) if str(b.get("tool_use_id") or "") == id), None)
    if at is None:
        content = [_from_engine(block, None) for block in blocks_of(message)]
        result = {"type": "tool_result", "tool_use_id": id, "content": content}
        return {**result, "is_error": True} if message.get("isError") else result
    own = had.pop(at)
    inner = _blocks(own.get("content"))
    if [*map(_to_engine, inner)] == blocks_of(message):
        return own
    content = as_they_came(blocks_of(message), inner, _to_engine, _from_engine)
    return {**own, "content": with_marker(content, inner, _UNMARKED)}


def _to_engine(block: dict[str, Any]) -> dict[str, Any]:
    match block["type"]:
        case "tool_use":
            return {
                "type": "toolCall",
                "id": block.get("id"),
                "name": str(block.get("name") or ""),
                "arguments": arguments_in(block.get("input")),
            }
        case "thinking" if _is_text(block, "thinking") and _is_text(block, "signature"):
            return {
                "type": "thinking",
                "thinking": block.get("thinking") or "",
                "thinkingSignature": block.get("signature") or "",
            }
        case "redacted_thinking" if _is_text(block, "data"):
            return {
                "type": "thinking",
                "thinking": "",
                "thinkingSignature": block.get("data") or "",
                "redacted": True,
            }
        case "image" if (data := _base64(block.get("source"))) is not None:
            kind = block["source"].get("media_type")
            return {"type": "image", "mimeType": str(kind or ""), "data": data}
        case "text" if isinstance(block.get("text"), str):
            # A cache marker is the loop's, and moves from call to call: it is no part of the
            # message.
            return {name: value for name, value in block.items() if name != "cache_control"}
    return kept(block)


def _is_text(block: Mapping[str, Any], name: str) -> bool:
    return isinstance(block.get(name) or "", str)


def _base64(source: Any) -> str | None:
    is_data = isinstance(source, Mapping) and source.get("type") == "base64"
    data = source.get("data") if is_data else None
    return data if isinstance(data, str) else None


def _from_engine(block: dict[str, Any], own: dict[str, Any] | None) -> dict[str, Any]:
    match block["type"]:
        case "toolCall":
            input_given = (own or {}).get("input")
            block_out = {"type": "tool_use", "id": block["id"], "name": block["name"]}
            return {**block_out, **(own or {}), "input": input_of(block["arguments"], input_given)}
        case "thinking" if block.get("redacted"):
            return {"type": "redacted_thinking", "data": block["thinkingSignature"]}
        case "thinking":
            return {
                "type": "thinking",
                "thinking": block["thinking"],
                "signature": block.get("thinkingSignature") or "",
            }
        case "image":
            source = {"type": "base64", "media_type": block["mimeType"], "data": block["data"]}
            return {"type": "image", "source": source}
    marker = {} if own is None else {n: own[n] for n in ("cache_control",) if n in own}
    return {**released(block), **marker}


# One more marker for the cache, before a rebase


MOST = 4
"""Of one request: platform.claude.com/docs/en/build-with-claude/prompt-caching"""


def markers_in(value: Any) -> int:
    parts = value if isinstance(value, list) else [value]
    count = 0
    for part in parts:
        if isinstance(part, Mapping):
            count += bool(part.get("cache_control")) + markers_in(part.get("content") or [])
    return count


def with_marked_result(messages: Sequence[Message], call: str, elsewhere: int) -> list[Message]:
    """The messages with a marker at a call's result, if the request has room for it."""
    marked = list(messages)
    if elsewhere + markers_in(marked) >= MOST:
        return marked
    after: Any = None
    for place in reversed(range(len(marked))):
        content = marked[place].get("content")
        blocks = content if isinstance(content, list) else []
        for number in reversed(range(len(blocks))):
            block = blocks[number]
            if not isinstance(block, Mapping):
                continue
            if block.get("type") == "tool_result" and block.get("tool_use_id") == call:
                # With the life of the one behind it, which none of a shorter life may precede.
                if after and not any(_markers(block)):
                    new = [
                        *blocks[:number],
                        {**block, "cache_control": after},
                        *blocks[number + 1 :],
                    ]
                    marked[place] = {**marked[place], "content": new}
                return marked
            after = after or next(_markers(block), None)
    return marked


def _markers(block: Mapping[str, Any]) -> Iterator[Any]:
    content = block.get("content")
    for part in (block, *(content if isinstance(content, list) else ())):
        if isinstance(part, Mapping) and part.get("cache_control"):
            yield part["cache_control"]
