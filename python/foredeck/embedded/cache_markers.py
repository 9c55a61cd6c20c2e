"""One more marker for Anthropic's cache, before a rebase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MOST = 4
"""Of one request: platform.claude.com/docs/en/build-with-claude/prompt-caching"""

Message = dict[str, Any]


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
