"""Whether a provider may refuse what foredeck has changed, such as what signed reasoning binds.

Only then is the request sent again as it came.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

Body = Mapping[str, Any]

STATUSES = frozenset({400, 413, 422})
"""Statuses about what a request says, not who sends it or how often."""
_TOO_LONG = re.compile(
    r"too (long|large|many tokens)|context.?(length|window|size|limit)|maximum context"
    r"|exceeds? the (limit|maximum)|above_max_length",
    re.I,
)
_COUNT = re.compile(r"\d[\d,]{3,}")
"""Of tokens."""
_REASONING = re.compile(r"signature|encrypted|thinking|reasoning", re.I)
"""May be bound to everything before it."""
_ACCOUNT = re.compile(
    r"credit|billing|quota|balance|api.?key|organi[sz]ation|workspace|account|content.?(filter|policy)"
    r"|usage limit|not_found|permission",
    re.I,
)
_MUCH = 0.05
"""Growth of a prompt that makes it too long."""
_PLACE = re.compile(r"^'?(\w+)(?:[.\[](\d+))?")
"""A member of the request, and its part."""
_NAMED_FIRST = re.compile(r"^(\w+)(?:[.\[][\w.\[\]]*)?: ")
_QUOTED = re.compile(r"[`'\"]([^`'\"]+)[`'\"]")


def may_be_ours(refusal: bytes, asked: Body, sent: Body, listed: str) -> bool:
    """Whether a refusal of `sent` may be about what differs from the client's `asked`."""
    if sent == asked:
        return False
    kind, param, text = _read(refusal)
    if _TOO_LONG.search(f"{kind} {text}"):
        return _is_longer(text, asked, sent)
    first = _NAMED_FIRST.match(text)
    named = _PLACE.match(param or (first[0] if first else ""))
    # A single word before a colon may be no member.
    if named is not None and (param or named[1] in asked or "." in named.string):
        return _may_be_in(named[1], named[2], text, asked, sent, listed)
    if _REASONING.search(text):
        return True
    if _ACCOUNT.search(f"{kind} {text}"):
        return False
    # `temperature` is not supported, or the model does not exist.
    ours = {listed, "tools"}
    quoted = set(_QUOTED.findall(text))
    return not any(
        name in quoted or (value in quoted if isinstance(value, str) else False)
        for name, value in asked.items()
        if name not in ours
    )


def _may_be_in(
    member: str, number: str | None, text: str, asked: Body, sent: Body, listed: str
) -> bool:
    if member == "tools":
        # foredeck's come behind the client's.
        return number is None or int(number) >= len(asked.get("tools") or ())
    if member != listed:
        return False
    if _REASONING.search(text):
        return True
    # With the neighbour: a call is refused for the results after it.
    upto = None if number is None else int(number) + 2
    return bool(asked[listed][:upto] != sent[listed][:upto])


def _is_longer(text: str, asked: Body, sent: Body) -> bool:
    size = len(json.dumps(asked))
    added = len(json.dumps(sent)) - size
    counts = [int(count.replace(",", "")) for count in _COUNT.findall(text)[:2]]
    if len(counts) < 2:
        return added > _MUCH * size
    # A token has two bytes or more, in nearly all scripts.
    return added > 2 * abs(counts[0] - counts[1])


def _read(refusal: bytes) -> tuple[str, str, str]:
    try:
        body = json.loads(refusal)
    except ValueError:
        return "", "", refusal.decode("utf-8", "replace")
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return "", "", str(error)
    kind = f"{error.get('type') or ''} {error.get('code') or ''}"
    detail = error.get("detail")
    if isinstance(detail, list) and detail and isinstance(detail[0], dict):
        place = [str(part) for part in detail[0].get("loc") or () if part != "body"]
        return kind, ".".join(place), str(detail[0].get("msg") or "")
    param = error.get("param")
    text = str(error.get("message") or detail or "")
    return kind, param if isinstance(param, str) else "", text


Message = Mapping[str, Any]

_SIGNED = ("thinking", "redacted_thinking")


def asks_to_drop(body: Mapping[str, Any]) -> bool:
    """Whether the provider leaves out stale reasoning instead of refusing it."""
    thinking = body.get("thinking")
    binding = thinking.get("block_binding") if isinstance(thinking, dict) else None
    how = binding.get("prefix_mismatch_behavior") if isinstance(binding, dict) else None
    return how == "drop_block"


def unsigned(message: Message) -> Message:
    """An answer without signed reasoning, unless nothing else is left."""
    content = message.get("content")
    if message.get("role") != "assistant" or not isinstance(content, list):
        return message
    rest = [b for b in content if not (isinstance(b, dict) and b.get("type") in _SIGNED)]
    return {**message, "content": rest} if rest and len(rest) < len(content) else message


def earlier_turns(messages: Sequence[Message]) -> int:
    """Messages before the user's last words; a provider wants later reasoning back."""
    for place in reversed(range(len(messages))):
        message = messages[place]
        if message.get("role") == "user" and not _is_result(message.get("content")):
            return place
    return 0


def without_signed(messages: Sequence[Message], upto: int) -> list[Message]:
    """The messages, without signed reasoning before `upto`."""
    return [unsigned(m) if place < upto else m for place, m in enumerate(messages)]


def _is_result(content: Any) -> bool:
    blocks = content if isinstance(content, list) else [None]
    return all(isinstance(b, dict) and b.get("type") == "tool_result" for b in blocks)
