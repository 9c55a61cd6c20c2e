"""Messages of the chat completions API."""

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
    as_they_came,
    blocks_of,
    definition_of,
    kept,
    released,
    result_message,
    with_marker,
)


class ChatCompletions:
    """The format `chat`."""

    api = "openai-completions"

    def to_engine(self, message: Mapping[str, Any], names: Mapping[str, str]) -> list[Message]:
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
        stop = "toolUse" if self.tool_uses(message) else "stop"
        return {"role": "assistant", "content": blocks, "stopReason": stop}

    def from_engine(self, group: Sequence[Message], original: Mapping[str, Any] | None) -> Message:
        (message,) = group
        if message["role"] == "toolResult":
            message_out = dict(original or {"role": "tool", "tool_call_id": message["toolCallId"]})
            return {**message_out, "content": _content(message, original)}
        if message["role"] != "assistant":
            return {**(original or {"role": "user"}), "content": _content(message, original)}
        blocks = blocks_of(message)
        message_out = dict(original or {"role": "assistant"})
        without_calls = {**message, "content": [b for b in blocks if b["type"] != "toolCall"]}
        empty = message_out["content"] if message_out.get("content") == "" else None
        message_out["content"] = _content(without_calls, original) or empty
        calls = [block for block in blocks if block["type"] == "toolCall"]
        if calls and isinstance(message_out.get("function_call"), Mapping):
            message_out["function_call"] = _with_arguments(
                message_out["function_call"], calls.pop()
            )
        if calls:
            remaining = list(message_out.get("tool_calls") or ())
            message_out["tool_calls"] = [_call(block, remaining) for block in calls]
        return message_out

    def is_system(self, message: Mapping[str, Any]) -> bool:
        return message.get("role") in ("system", "developer")

    def tool(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        names = ("name", "description", "parameters")
        return {"type": "function", "function": {name: definition[name] for name in names}}

    def to_definition(self, tool: Mapping[str, Any]) -> dict[str, Any]:
        return definition_of(tool.get("function") or {})

    def tool_uses(self, message: Mapping[str, Any]) -> list[ToolRequest]:
        uses = []
        for call in message.get("tool_calls") or ():
            function = _function(call)
            id, name = str(call.get("id") or ""), str(function.get("name") or "")
            uses.append(ToolRequest(id, name, _arguments_of(function)))
        # What the API had before it had tools: one call, which no number tells from others.
        earlier = message.get("function_call")
        if isinstance(earlier, Mapping):
            uses.append(ToolRequest("", str(earlier.get("name") or ""), _arguments_of(earlier)))
        return uses

    def result(self, call: ToolRequest, text: str, *, failed: bool) -> dict[str, Any]:
        del failed  # the API has no place for it; the text says it
        return {"role": "tool", "tool_call_id": call.id, "content": text}

    def usage(self, reported: Mapping[str, Any]) -> CountedTokens:
        details = reported.get("prompt_tokens_details") or {}
        # The API counts what was read from the cache among what went in.
        read = int(details.get("cached_tokens") or 0)
        return CountedTokens(max(0, int(reported.get("prompt_tokens") or 0) - read), read)


def _blocks(content: Any) -> list[dict[str, Any]]:
    """Raises `UnknownMessage` for what is no content."""
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [text_block(content)]
    return [_block(part) for part in _listed(content)]


def _listed(content: Any) -> list[dict[str, Any]]:
    if not isinstance(content, Sequence):
        raise UnknownMessage(f"content that is a {type(content).__name__} cannot be read")
    for number, part in enumerate(content):
        if not isinstance(part, Mapping):
            raise UnknownMessage(f"part {number} is no object")
    return [dict(part) for part in content]


def _block(part: Mapping[str, Any]) -> dict[str, Any]:
    if part.get("type") == "text" and isinstance(part.get("text") or "", str):
        return text_block(part.get("text") or "")
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, Mapping) else image
    head, comma, data = url.partition(",") if isinstance(url, str) else ("", "", "")
    if part.get("type") == "image_url" and comma and head.startswith("data:"):
        kind = head.removeprefix("data:").partition(";")[0]
        return {"type": "image", "mimeType": kind, "data": data}
    return kept(part)  # passed on as it came


def _content(
    message: Message, original: Mapping[str, Any] | None
) -> str | list[dict[str, Any]] | None:
    blocks = blocks_of(message)
    content = (original or {}).get("content")
    if content and _blocks(content) == blocks:
        text_content: str | list[dict[str, Any]] = content
        return text_content
    had = _listed(content) if isinstance(content, list) else []
    plain = {"type", "text"}
    if all(b["type"] == "text" for b in blocks) and all(part.keys() <= plain for part in had):
        return "\n".join(str(block.get("text") or "") for block in blocks)
    return with_marker(as_they_came(blocks, had, _block, _part), had)


def _part(block: dict[str, Any], own: dict[str, Any] | None) -> dict[str, Any]:
    if block["type"] == "image":
        url = f"data:{block['mimeType']};base64,{block['data']}"
        return {"type": "image_url", "image_url": {"url": url}}
    return {**(own or {}), **released(block)}


def _call(block: Mapping[str, Any], left: list[dict[str, Any]]) -> dict[str, Any]:
    for number, call in enumerate(left):
        if str(call.get("id") or "") == block["id"]:
            left.pop(number)
            name = "custom" if call.get("type") == "custom" else "function"
            return {**call, name: _with_arguments(_function(call), block)}
    arguments = json.dumps(block["arguments"], ensure_ascii=False)
    function = {"name": block["name"], "arguments": arguments}
    return {"id": block["id"], "type": "function", "function": function}


def _function(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Name and arguments; those of a custom tool are one text."""
    function = call.get("custom") if call.get("type") == "custom" else call.get("function")
    return function if isinstance(function, Mapping) else {}


def _arguments_of(function: Mapping[str, Any]) -> dict[str, Any]:
    if "arguments" not in function and "input" in function:
        return {"input": function["input"]}
    return _arguments(function.get("arguments"))


def _with_arguments(function: Mapping[str, Any], block: Mapping[str, Any]) -> dict[str, Any]:
    new = block["arguments"]
    if _arguments_of(function) == new:
        return dict(function)
    if "arguments" not in function and set(new) == {"input"}:
        return {**function, "input": new["input"]}
    is_text = not isinstance(function.get("arguments"), Mapping)
    return {**function, "arguments": json.dumps(new, ensure_ascii=False) if is_text else new}


def _arguments(text: Any) -> dict[str, Any]:
    if isinstance(text, dict):
        return text
    try:
        value = json.loads(text or "{}")
    except (TypeError, ValueError):
        return {"arguments": str(text)}
    return value if isinstance(value, dict) else {"arguments": value}
