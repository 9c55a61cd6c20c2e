"""Blocks and calls of other agents and OpenAI's Responses API, in the stored shape."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from foredeck.context.messages.items import Block, text_block

MAX_DEPTH = 100
"""Levels of nesting beyond which recursive code would fail."""
CALL_MEMBERS = ("arguments", "input", "action")
"""Where an item has the arguments of its call."""
MAX_OTHER_BLOCK = 10_000
"""A larger block of an unknown kind is named and left out."""
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)", re.MULTILINE)
_HEAD = 1000
"""Characters that hold an output's exit code."""


def other_block(block: Any) -> Block:
    text = json.dumps(block, ensure_ascii=False)
    if len(text) <= MAX_OTHER_BLOCK:
        return text_block(text)
    kind = block.get("type") if isinstance(block, dict) else type(block).__name__
    return text_block(f"({kind}: {len(text):,} characters, left out)")


def arguments_of(value: Any) -> dict[str, Any]:
    """An object, or its JSON text; other text as `input`."""
    if isinstance(value, str):
        try:
            parsed = json.loads(value, parse_constant=str, parse_float=finite)
        except (ValueError, RecursionError):
            parsed = None
        is_sound = isinstance(parsed, dict) and not is_deep(parsed, value.count("{"))
        value = parsed if is_sound else {"input": value}
    return value if isinstance(value, dict) else {}


def read_call(item: dict[str, Any]) -> Block:
    """The tool call that an item is, of whichever kind."""
    raw: Any = next((item[name] for name in CALL_MEMBERS if name in item), {})
    return {
        "type": "toolCall",
        "id": str(item.get("call_id") or item.get("id") or ""),
        "name": str(item.get("name") or str(item.get("type")).removesuffix("_call")),
        "arguments": arguments_of(raw),
    }


def read_output(output: Any) -> tuple[list[Block], bool]:
    failed = False
    if isinstance(output, dict):
        failed = output.get("success") is False
        output = output.get("content")
    if not isinstance(output, str):
        return blocks_in(output), failed
    text, code = _unwrapped(output)
    if code is None and (exit_code := _EXIT_CODE.search(text[:_HEAD])):
        code = int(exit_code[1])
    return [text_block(text)], failed or bool(code)


def _unwrapped(output: str) -> tuple[str, int | None]:
    """An output's text, with its exit code if it is wrapped in JSON."""
    if not output.startswith('{"output"'):
        return output, None
    try:
        wrapped = json.loads(output)
    except (ValueError, RecursionError):
        return output, None
    metadata = wrapped.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    return str(wrapped["output"]), code if isinstance(code, int) else None


def blocks_in(content: Any) -> list[Block]:
    """The blocks of a content, which may be a text."""
    if isinstance(content, str):
        return [text_block(content)]
    return [_block(part) for part in content] if isinstance(content, list) else []


def _block(part: Any) -> Block:
    text = part.get("text") if isinstance(part, dict) else None
    if isinstance(text, str):
        return text_block(text)
    url = part.get("image_url") if isinstance(part, dict) else None
    head, _, data = url.partition(";base64,") if isinstance(url, str) else ("", "", "")
    if data and head.startswith("data:"):
        return {"type": "image", "data": data, "mimeType": head.removeprefix("data:")}
    return other_block(part)


def is_deep(value: Any, brackets: int) -> bool:
    """Whether a JSON value is nested deeper than `MAX_DEPTH`. `brackets`: opening ones in its
    text."""
    # Hardly any line has as many, and counting them is quick.
    if brackets <= MAX_DEPTH:
        return False
    # Level by level, since recursion is what a deep value breaks.
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for item in level if isinstance(item, dict | list)]
        if not level:
            return False
        level = [
            child for item in level for child in (item.values() if isinstance(item, dict) else item)
        ]
    return any(isinstance(item, dict | list) for item in level)


def finite(text: str) -> float:
    """A JSON number; raises `ValueError` beyond a float's range."""
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is out of range")
    return value
