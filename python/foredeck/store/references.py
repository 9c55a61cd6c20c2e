"""Which blobs a document needs, and substitutes for pruned ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from foredeck.errors import Missing
from foredeck.model.messages import is_digest, marked, strings_in
from foredeck.model.records import ARCHIVED, messages_of_turn

if TYPE_CHECKING:
    from foredeck.store.protocol import Store, Token

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


class Archives:
    """What was pruned in a store; ask only about missing blobs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read_at: Token | None = None
        self._left: dict[str, str | None] = {}
        """What is left of a pruned blob, or None, by hash."""

    def holds(self, digest: str) -> bool:
        """Whether this hash was pruned."""
        self._refresh()
        return digest in self._left

    def left_of(self, digests: Iterable[str]) -> dict[str, bytes]:
        """What is left of pruned blobs, by old hash."""
        self._refresh()
        pruned = {digest: self._left[digest] for digest in digests if digest in self._left}
        stubs = self._store.blobs({stub for stub in pruned.values() if stub is not None})
        remains = {}
        for digest, stub in pruned.items():
            if stub is None:
                remains[digest] = ARCHIVED.encode()
            elif stub in stubs:
                remains[digest] = stubs[stub]
        return remains

    def bytes_of(self, digest: str) -> bytes:
        """What is left of a missing blob. Raises `Missing`."""
        remains = self.left_of([digest])
        if digest not in remains:
            raise Missing(f"no blob {digest} in this store")
        return remains[digest]

    def _refresh(self) -> None:
        latest = self._store.latest()
        if latest == self._read_at:
            return
        self._left.clear()
        for head in self._store.query("archived"):
            for digest in head.fields.get("texts") or ():
                self._left[digest] = None
        for head in self._store.query("archived"):
            for address, mark in (head.fields.get("messages") or {}).items():
                self._left[address] = mark.get("$json")
        self._read_at = latest


def stored_messages(store: Store, addresses: Iterable[str]) -> dict[str, bytes]:
    unique = set(addresses)
    blobs = store.blobs(unique)
    absent = unique - blobs.keys()
    return blobs | Archives(store).left_of(absent) if absent else blobs
