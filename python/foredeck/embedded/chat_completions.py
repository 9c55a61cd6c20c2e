"""Messages of the chat completions API, which OpenAI began and most servers speak."""

from __future__ import annotations

import json
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
from foredeck.model.messages import text_in


class ChatCompletions:
    """The format `chat`."""

    api = "openai-completions"

    def to_engine(self, message: Mapping[str, Any], names: Mapping[str, str]) -> list[Message]:
        """See `MessageFormat`."""
        match message.get("role"):
            case "user":
                return [{"role": "user", "content": _blocks(message.get("content"))}]
            case "assistant":
                return [self._assistant(message)]
            case "tool" | "function":
                id = str(message.get("tool_call_id") or message.get("name") or "")
                content = _blocks(message.get("content"))
                return [result_message(id, names, content, failed=False)]
            case "system" | "developer":  # in mid-chat: the program's own words
                content = _blocks(message.get("content"))
                return [{"role": "custom", "customType": "system", "content": content}]
        raise UnknownMessage(f"a message with the role {message.get('role')!r} cannot be read")

    def _assistant(self, message: Mapping[str, Any]) -> Message:
        blocks = _blocks(message.get("content"))
        for use in self.tool_uses(message):
            arguments = dict(use.arguments)
            call = {"type": "toolCall", "id": use.id, "name": use.name, "arguments": arguments}
            blocks.append(call)
        stop = "toolUse" if message.get("tool_calls") else "stop"
        return {"role": "assistant", "content": blocks, "stopReason": stop}

    def from_engine(self, group: Sequence[Message], original: Mapping[str, Any] | None) -> Message:
        """See `MessageFormat`."""
        (message,) = group
        if message["role"] == "toolResult":
            content = _parts(message, original)
            kept = dict(original or {"role": "tool", "tool_call_id": message["toolCallId"]})
            return {**kept, "content": content}
        if message["role"] != "assistant":
            return {**(original or {"role": "user"}), "content": _parts(message, original)}
        calls = [block for block in blocks_of(message) if block["type"] == "toolCall"]
        kept = dict(original or {"role": "assistant"})
        kept["content"] = text_in(message.get("content")) or None
        if calls:
            kept["tool_calls"] = [_call(block, original) for block in calls]
        return kept

    def is_system(self, message: Mapping[str, Any]) -> bool:
        """See `MessageFormat`."""
        return message.get("role") in ("system", "developer")

    def tool(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        """See `MessageFormat`."""
        names = ("name", "description", "parameters")
        return {"type": "function", "function": {name: definition[name] for name in names}}

    def to_definition(self, tool: Mapping[str, Any]) -> dict[str, Any]:
        """See `MessageFormat`."""
        return definition_of(tool.get("function") or {})

    def tool_uses(self, message: Mapping[str, Any]) -> list[ToolRequest]:
        """See `MessageFormat`."""
        uses = []
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            arguments = _arguments(function.get("arguments"))
            uses.append(ToolRequest(str(call.get("id")), str(function.get("name")), arguments))
        return uses

    def result(self, call: ToolRequest, text: str, *, failed: bool) -> dict[str, Any]:
        """See `MessageFormat`."""
        del failed  # the API has no place for it; the text says it
        return {"role": "tool", "tool_call_id": call.id, "content": text}

    def usage(self, reported: Mapping[str, Any]) -> CountedTokens:
        """See `MessageFormat`."""
        details = reported.get("prompt_tokens_details") or {}
        # The API counts what was read from the cache among what went in.
        read = int(details.get("cached_tokens") or 0)
        return CountedTokens(max(0, int(reported.get("prompt_tokens") or 0) - read), read)


def _blocks(content: Any) -> list[dict[str, Any]]:
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [text_block(content)]
    return [_block(part) for part in content]


def _block(part: Mapping[str, Any]) -> dict[str, Any]:
    if part.get("type") == "text":
        return text_block(str(part.get("text") or ""))
    url = str((part.get("image_url") or {}).get("url") or "")
    head, comma, data = url.partition(",")
    if part.get("type") == "image_url" and comma and head.startswith("data:"):
        kind = head.removeprefix("data:").partition(";")[0]
        return {"type": "image", "mimeType": kind, "data": data}
    return dict(part)  # passed on as it came


def _parts(message: Message, original: Mapping[str, Any] | None) -> str | list[dict[str, Any]]:
    """Content as the API has it: one text, or parts where there is more than text."""
    blocks = blocks_of(message)
    if all(block["type"] == "text" for block in blocks):
        return "\n".join(str(block.get("text") or "") for block in blocks)
    content = (original or {}).get("content")
    had = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return [_part(block, had) for block in blocks]


def _part(block: dict[str, Any], had: Sequence[dict[str, Any]]) -> dict[str, Any]:
    if block["type"] == "image":
        # As it came: it may say in which detail the picture is to be seen.
        for part in had:
            if _block(part) == block:
                return part
        url = f"data:{block['mimeType']};base64,{block['data']}"
        return {"type": "image_url", "image_url": {"url": url}}
    return block


def _call(block: Mapping[str, Any], original: Mapping[str, Any] | None) -> dict[str, Any]:
    """A tool call as it came, unless its arguments were folded."""
    for call in (original or {}).get("tool_calls") or ():
        function = call.get("function") or {}
        if call.get("id") == block["id"]:
            if _arguments(function.get("arguments")) == block["arguments"]:
                return dict(call)
            folded = json.dumps(block["arguments"], ensure_ascii=False)
            return {**call, "function": {**function, "arguments": folded}}
    arguments = json.dumps(block["arguments"], ensure_ascii=False)
    function = {"name": block["name"], "arguments": arguments}
    return {"id": block["id"], "type": "function", "function": function}


def _arguments(text: Any) -> dict[str, Any]:
    """What a model wrote as arguments; what is no JSON object is kept as a text of its own."""
    if isinstance(text, dict):
        return text
    try:
        value = json.loads(text or "{}")
    except (TypeError, ValueError):
        return {"arguments": str(text)}
    return value if isinstance(value, dict) else {"arguments": value}
