"""Messages of Anthropic's API. A message of the user's may hold the results of several tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foredeck.context.messages.items import text_block
from foredeck.embedded.format import (
    CountedTokens,
    Message,
    ToolRequest,
    UnknownMessage,
    blocks_of,
    definition_of,
    result_message,
)


class AnthropicMessages:
    """The format `anthropic`."""

    api = "anthropic-messages"

    def to_engine(self, message: Mapping[str, Any], names: Mapping[str, str]) -> list[Message]:
        """See `MessageFormat`."""
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
        """See `MessageFormat`."""
        is_answer = any(message["role"] == "assistant" for message in group)
        role = (original or {}).get("role") or ("assistant" if is_answer else "user")
        content: list[dict[str, Any]] = []
        for message in group:
            if message["role"] == "toolResult":
                content.append(_tool_result(message))
            else:
                content += map(_from_engine, blocks_of(message))
        # Where the loop marks the end of what the provider shall cache, the changed message keeps
        # it.
        if marker := _marker(original):
            for place in reversed(range(len(content))):
                if content[place]["type"] not in _UNMARKED:
                    content[place] = {**content[place], "cache_control": marker}
                    break
        return {"role": role, "content": content}

    def is_system(self, message: Mapping[str, Any]) -> bool:
        """See `MessageFormat`: here the system prompt is given apart."""
        del message
        return False

    def tool(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        """See `MessageFormat`."""
        return {
            "name": definition["name"],
            "description": definition["description"],
            "input_schema": definition["parameters"],
        }

    def to_definition(self, tool: Mapping[str, Any]) -> dict[str, Any]:
        """See `MessageFormat`."""
        return definition_of(tool, "input_schema")

    def tool_uses(self, message: Mapping[str, Any]) -> list[ToolRequest]:
        """See `MessageFormat`."""
        return [
            ToolRequest(
                str(block.get("id")), str(block.get("name")), dict(block.get("input") or {})
            )
            for block in _blocks(message.get("content"))
            if block["type"] == "tool_use"
        ]

    def result(self, call: ToolRequest, text: str, *, failed: bool) -> dict[str, Any]:
        """See `MessageFormat`: a block for the next message of the user's."""
        block = {"type": "tool_result", "tool_use_id": call.id, "content": text}
        return {**block, "is_error": True} if failed else block

    def usage(self, reported: Mapping[str, Any]) -> CountedTokens:
        """See `MessageFormat`."""
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        return CountedTokens(*(int(reported.get(name) or 0) for name in names))


_UNMARKED = ("thinking", "redacted_thinking")
"""Blocks that the API lets no request mark for its cache."""


def _marker(original: Mapping[str, Any] | None) -> Any:
    """The cache marker of a message that the loop has marked: its last block's."""
    content = (original or {}).get("content")
    blocks = content if isinstance(content, list) else []
    return next((b["cache_control"] for b in reversed(blocks) if b.get("cache_control")), None)


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [text_block(content)] if content else []
    return [dict(block) for block in content or ()]


def _result(block: Mapping[str, Any], names: Mapping[str, str]) -> Message:
    content = [_to_engine(each) for each in _blocks(block.get("content"))]
    id, failed = str(block.get("tool_use_id") or ""), bool(block.get("is_error"))
    return result_message(id, names, content, failed=failed)


def _tool_result(message: Message) -> dict[str, Any]:
    content = [_from_engine(block) for block in blocks_of(message)]
    result = {"type": "tool_result", "tool_use_id": message["toolCallId"], "content": content}
    return {**result, "is_error": True} if message.get("isError") else result


def _to_engine(block: dict[str, Any]) -> dict[str, Any]:
    match block["type"]:
        case "tool_use":
            return {
                "type": "toolCall",
                "id": block.get("id"),
                "name": block.get("name"),
                "arguments": dict(block.get("input") or {}),
            }
        case "thinking":
            return {
                "type": "thinking",
                "thinking": block.get("thinking") or "",
                "thinkingSignature": block.get("signature") or "",
            }
        case "redacted_thinking":
            return {
                "type": "thinking",
                "thinking": "",
                "thinkingSignature": block.get("data") or "",
                "redacted": True,
            }
        case "image" if (block.get("source") or {}).get("type") == "base64":
            source = block["source"]
            return {"type": "image", "mimeType": source["media_type"], "data": source["data"]}
    # A cache marker is the loop's, and moves from call to call: it is no part of the message.
    return {name: value for name, value in block.items() if name != "cache_control"}


def _from_engine(block: dict[str, Any]) -> dict[str, Any]:
    match block["type"]:
        case "toolCall":
            return {
                "type": "tool_use",
                "id": block["id"],
                "name": block["name"],
                "input": block["arguments"],
            }
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
    # What is read back from the store has its members in another order.
    return {"type": block["type"], **block}
