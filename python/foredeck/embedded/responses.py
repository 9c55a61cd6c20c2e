"""OpenAI's Responses API.

The items of an answer are gathered into one message `{"role": "assistant", "items": [...]}`; any
other item is a message of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from foredeck.context.messages.items import text_block
from foredeck.embedded.format import (
    CountedTokens,
    Message,
    ToolRequest,
    blocks_of,
    definition_of,
    result_message,
)
from foredeck.hosts.foreign_blocks import CALL_MEMBERS, read_call, read_output

Item = dict[str, Any]


def gathered(items: Iterable[Item]) -> list[Message]:
    """The items of a request as messages."""
    groups: list[Message] = []
    items = list(items)
    roles = [*map(_role, items), ""]
    for number, item in enumerate(items):
        role = roles[number]
        if role == "other" and roles[number + 1] in ("assistant", "tool") and groups:
            # What the provider has noted in the middle of an answer does not end it.
            role = "assistant" if groups[-1]["role"] == "assistant" else role
        if role == "assistant" and groups and groups[-1]["role"] == role:
            groups[-1]["items"].append(item)
        else:
            groups.append({"role": role, "items": [item]})
            if role in ("system", "developer"):
                groups[-1]["content"] = read_output(item.get("content"))[0]
    return groups


def taken_apart(messages: Iterable[Mapping[str, Any]]) -> list[Item]:
    """The inverse of `gathered`."""
    return [item for message in messages for item in message["items"]]


_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "apply_patch_call")
"""Calls that the client answers with text; items of others go out as they came."""


def _role(item: Item) -> str:
    kind = str(item.get("type") or "message")
    if kind == "reasoning" or kind.endswith("_call"):
        return "assistant"
    if kind.removesuffix("_output") in _CALLS:
        return "tool"
    return str(item.get("role") or "other") if kind == "message" else "other"


class Responses:
    """The format of gathered items (`embedded.format.MessageFormat`)."""

    api = "openai-responses"

    def __init__(self) -> None:
        self._calls: dict[str, str] = {}

    def to_engine(self, message: Mapping[str, Any], names: Mapping[str, str]) -> list[Message]:
        items: list[Item] = message["items"]
        match message["role"]:
            case "assistant":
                blocks = [block for item in items for block in _answer_blocks(item)]
                uses = any(block["type"] == "toolCall" for block in blocks)
                stop = "toolUse" if uses else "stop"
                return [{"role": "assistant", "content": blocks, "stopReason": stop}]
            case "tool":
                # Of a local shell it is the call's item that an output names.
                item_id = str(items[0].get("id") or "")
                id = str(items[0].get("call_id") or self._calls.get(item_id, item_id))
                blocks, failed = read_output(items[0].get("output"))
                return [result_message(id, names, blocks, failed=failed)]
            case "user":
                blocks, _ = read_output(items[0].get("content"))
                return [{"role": "user", "content": blocks}]
        content = items[0].get("content")
        blocks = read_output(content)[0] if content else [text_block(json.dumps(items[0]))]
        return [{"role": "custom", "customType": "system", "content": blocks}]

    def from_engine(self, group: Sequence[Message], original: Mapping[str, Any] | None) -> Message:
        (message,) = group
        items: list[Item] = list((original or {}).get("items") or ())
        if message["role"] == "assistant":
            return {"role": "assistant", "items": list(_answer_items(blocks_of(message), items))}
        if message["role"] == "toolResult":
            call = {"type": "function_call_output", "call_id": message["toolCallId"]}
            item = items[0] if items else call
            return {
                "role": "tool",
                "items": [{**item, "output": _content(message, item, "output")}],
            }
        if message["role"] == "user":
            item = items[0] if items else {"type": "message", "role": "user"}
            content = _content(message, item, "content")
            return {"role": "user", "items": [{**item, "content": content}]}
        return {"role": message["role"], "items": items}

    def is_system(self, message: Mapping[str, Any]) -> bool:
        return message["role"] in ("system", "developer", "other")

    def tool(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        # Strict definitions may have no optional members, and ours have.
        names = ("name", "description", "parameters")
        return {"type": "function", **{n: definition[n] for n in names}, "strict": False}

    def to_definition(self, tool: Mapping[str, Any]) -> dict[str, Any]:
        return definition_of({**tool, "name": tool.get("name") or tool.get("type")})

    def tool_uses(self, message: Mapping[str, Any]) -> list[ToolRequest]:
        items = message.get("items") or ()
        for item in items:
            if item.get("id") and item.get("call_id"):
                self._calls[str(item["id"])] = str(item["call_id"])
        blocks = (block for item in items for block in _answer_blocks(item))
        return [
            ToolRequest(block["id"], block["name"], block["arguments"])
            for block in blocks
            if block["type"] == "toolCall"
        ]

    def result(self, call: ToolRequest, text: str, *, failed: bool) -> dict[str, Any]:
        del failed  # the API has no place for it; the text says it
        item = {"type": "function_call_output", "call_id": call.id, "output": text}
        return {"role": "tool", "items": [item]}

    def usage(self, reported: Mapping[str, Any]) -> CountedTokens:
        details = reported.get("input_tokens_details") or {}
        # The API counts what was read from the cache among what went in.
        read = int(details.get("cached_tokens") or 0)
        return CountedTokens(max(0, int(reported.get("input_tokens") or 0) - read), read)


def _answer_blocks(item: Item) -> Iterator[dict[str, Any]]:
    kind = str(item.get("type") or "message")
    if kind == "message":
        yield text_block("".join(str(part.get("text") or "") for part in blocks_of(item)))
    elif kind == "reasoning":
        parts = [*blocks_of({"content": item.get("summary")}), *blocks_of(item)]
        thought = "\n\n".join(str(part.get("text") or "") for part in parts)
        yield {"type": "thinking", "thinking": thought, "thinkingSignature": _sealed(item)}
    elif kind not in _CALLS:
        # Not its picture, if it has one: that is no text that a model reads.
        yield {name: value for name, value in item.items() if name != "result"}
    else:
        block = read_call(item)
        # The API knows a tool by its namespace and name, in a call that is sent again, too.
        yield {**block, "namespace": item["namespace"]} if item.get("namespace") else block


def _sealed(item: Item) -> str:
    names = ("type", "id", "summary", "content", "encrypted_content")
    return json.dumps({n: item[n] for n in names if item.get(n) is not None}, ensure_ascii=False)


def _answer_items(blocks: Sequence[dict[str, Any]], items: Sequence[Item]) -> Iterator[Item]:
    """A changed answer's items: the old ones, where they say the same."""
    remaining = list(items)
    for block in blocks:
        same = next((item for item in remaining if _stems(block, item)), None)
        if same is not None:
            remaining.remove(same)
        match block["type"]:
            case "thinking":
                yield same or json.loads(block["thinkingSignature"])
            case "text" if same is None:
                part = {"type": "output_text", "text": block["text"], "annotations": []}
                yield {"type": "message", "role": "assistant", "content": [part]}
            case "toolCall":
                yield _call_item(block, same)
            case _:
                assert same is not None
                yield same


def _stems(block: dict[str, Any], item: Item) -> bool:
    (own,) = _answer_blocks(item)
    if block["type"] != own["type"]:
        return False
    if own["type"] == "toolCall":
        return bool(block["id"] == own["id"])
    return bool(own == block)


def _call_item(block: dict[str, Any], item: Item | None) -> Item:
    if item is None:
        item_out = {"type": "function_call", "call_id": block["id"], "name": block["name"]}
        item_out |= {"namespace": block["namespace"]} if "namespace" in block else {}
        return {**item_out, "arguments": json.dumps(block["arguments"], ensure_ascii=False)}
    (own,) = _answer_blocks(item)
    if own["arguments"] == block["arguments"]:
        return item
    for name in CALL_MEMBERS:
        if name in item:
            is_text = isinstance(item[name], str)
            new: Any = block["arguments"]
            # A custom tool's input is a text, which the engine has as its one argument.
            if is_text and name == "input" and set(new) == {"input"}:
                new = new["input"]
            if is_text and not isinstance(new, str):
                new = json.dumps(new, ensure_ascii=False)
            return {**item, name: new}
    return item


def _content(message: Message, item: Item, name: str) -> str | list[dict[str, Any]]:
    blocks = blocks_of(message)
    had = item.get(name)
    if name == "output" and not isinstance(had, list):
        return "\n".join(str(b.get("text") or "") for b in blocks)
    # What is no text, such as a file, is in a block only as JSON: the part itself goes out.
    parts = [part for part in had if isinstance(part, dict)] if isinstance(had, list) else []
    return [_part(block, parts) for block in blocks]


def _part(block: dict[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
    for number, part in enumerate(parts):
        if read_output([part])[0] == [block]:
            return parts.pop(number)
    if block["type"] == "image":
        url = f"data:{block['mimeType']};base64,{block['data']}"
        return {"type": "input_image", "image_url": url}
    return {"type": "input_text", "text": str(block.get("text") or "")}
