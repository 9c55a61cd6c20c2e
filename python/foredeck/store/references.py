"""Which blobs a document needs.

Three kinds of places name blobs: the marks that `model.messages.pack` leaves, the addresses of
stored messages (whose packed form holds marks in turn), and plain hashes in the records
of turns and calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from foredeck.model.messages import is_digest, marked
from foredeck.model.records import messages_of_turn

RECORDS = frozenset({"turn", "call"})
"""Types that name stored messages."""


@dataclass(slots=True)
class References:
    """Hashes that a document names.

    `messages` are addresses of stored messages. `needed` are blobs without which the document is
    not whole. `possible` look like hashes and may name a blob, or something else.
    """

    messages: set[str] = field(default_factory=set)
    needed: set[str] = field(default_factory=set)
    possible: set[str] = field(default_factory=set)


def references(type: str, fields: Mapping[str, Any]) -> References:
    """The hashes that a version names, besides that of its own content."""
    found = References()
    body = {name: value for name, value in fields.items() if name != "content"}
    found.needed.update(marked(body))
    if type in RECORDS:
        found.messages.update(_addresses(type, fields))
        found.possible.update(text for text in _strings(body) if is_digest(text))
        found.possible -= found.messages | found.needed
    if type == "change":
        states = [state for path in fields.get("paths") or () for state in path.values()]
        digests = [state.get("digest") for state in states if isinstance(state, dict)]
        found.needed.update(str(digest) for digest in digests if is_digest(digest))
    if type == "toolcall":
        extras = [*(fields.get("images") or ()), fields.get("full_output")]
        found.needed.update(digest for digest in extras if is_digest(digest))
    return found


def in_message(data: bytes | None) -> set[str]:
    """The blobs that a stored message's packed form names; none for what is no such form."""
    if data is None or not data.startswith((b"{", b"[")):
        return set()
    try:
        return set(marked(json.loads(data)))
    except (ValueError, RecursionError):
        return set()


def _addresses(type: str, fields: Mapping[str, Any]) -> Iterator[str]:
    if type == "turn":
        named = messages_of_turn(fields)
    else:
        keys = fields.get("keys") or ()
        named = [key[1] for key in keys if isinstance(key, list) and len(key) > 1]
    return (address for address in named if is_digest(address))


def _strings(value: Any) -> Iterator[str]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, dict):
            stack.extend(item.values())
