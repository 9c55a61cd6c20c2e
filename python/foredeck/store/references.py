"""Which blobs a document needs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from foredeck.model.messages import is_digest, marked, strings_in
from foredeck.model.records import messages_of_turn

RECORDS = frozenset({"turn", "call"})
"""Types that name stored messages."""


@dataclass(slots=True)
class References:
    """A document's hashes: message addresses, needed blobs, and strings that look like hashes."""

    messages: set[str] = field(default_factory=set)
    needed: set[str] = field(default_factory=set)
    possible: set[str] = field(default_factory=set)


def references(type: str, fields: Mapping[str, Any]) -> References:
    refs = References()
    body = {name: value for name, value in fields.items() if name != "content"}
    refs.needed.update(marked(body))
    if type in RECORDS:
        refs.messages.update(_addresses(type, fields))
        refs.possible.update(text for text in strings_in(body) if is_digest(text))
        refs.possible -= refs.messages | refs.needed
    if type == "change":
        states = [state for path in fields.get("paths") or () for state in path.values()]
        digests = [state.get("digest") for state in states if isinstance(state, dict)]
        refs.needed.update(str(digest) for digest in digests if is_digest(digest))
    if type == "toolcall":
        extras = [*(fields.get("images") or ()), fields.get("full_output")]
        refs.needed.update(digest for digest in extras if is_digest(digest))
    return refs


def in_message(data: bytes | None) -> set[str]:
    """Blobs named in a packed message."""
    if data is None or not data.startswith((b"{", b"[")):
        return set()
    try:
        return set(marked(json.loads(data)))
    except (ValueError, RecursionError):
        return set()


def _addresses(type: str, fields: Mapping[str, Any]) -> Iterator[str]:
    if type == "turn":
        addresses = messages_of_turn(fields)
    else:
        keys = fields.get("keys") or ()
        addresses = [key[1] for key in keys if isinstance(key, list) and len(key) > 1]
    return (address for address in addresses if is_digest(address))
