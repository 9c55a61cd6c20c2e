"""What is left of a message that is pruned: its shape, its calls, and the words to find it by."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from foredeck.model.archive import ARCHIVED
from foredeck.model.messages import WORDS_LEFT, unpack
from foredeck.search.secrets import mask_secrets
from foredeck.search.texts import said_by, thinking_of

_WORD = re.compile(r"[\w./-]*\w")
_KEPT = frozenset(
    {
        *("role", "timestamp", "api", "provider", "model", "usage", "stopReason"),
        *("customType", "display", "toolCallId", "toolName", "isError"),
    }
)
"""Fields of a message that hold none of its text."""
_OF_CALL = ("type", "id", "name", "arguments")


def stub_of(packed: Mapping[str, Any], blob: Callable[[str], bytes]) -> dict[str, Any]:
    """A stored message (in its packed form) without its text.

    Each of its blocks stays in its place, since prompts name blocks by number; tool calls keep
    their arguments, which are those of the call's own object. Under `WORDS_LEFT` are its distinct
    words, secrets left out: neither their order nor their number, but it is still found by them.
    """
    message = unpack(dict(packed), blob)
    words = {"said": words_of(said_by(message)), "thinking": words_of(thinking_of(message))}
    stub = {name: value for name, value in packed.items() if name in _KEPT}
    stub["content"] = _content(packed.get("content"))
    stub[WORDS_LEFT] = {kind: text for kind, text in words.items() if text}
    return stub


def words_of(text: str) -> str:
    """The distinct words of a text, sorted, with a space between."""
    return " ".join(sorted(set(_WORD.findall(mask_secrets(text)))))


def _content(content: Any) -> Any:
    if isinstance(content, list):
        return [_block(block) for block in content]
    return ARCHIVED


def _block(block: Any) -> dict[str, Any]:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "toolCall":
        return {name: block[name] for name in _OF_CALL if name in block}
    if kind == "thinking":
        return {"type": kind, kind: ARCHIVED}
    return {"type": "text", "text": ARCHIVED}
