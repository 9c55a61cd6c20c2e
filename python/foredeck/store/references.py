"""Which blobs a document needs, and what a store gives for those that were pruned.

Three kinds of places name blobs: the marks that `model.messages.pack` leaves, the addresses of
stored messages (whose packed form holds marks in turn), and plain hashes in the records
of turns and calls.
"""

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
        found.possible.update(text for text in strings_in(body) if is_digest(text))
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


class Archives:
    """Everything that was pruned in a store.

    Ask only about blobs that the store does not have: a store where nothing was pruned then never
    reads these records.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read_at: Token | None = None
        self._left: dict[str, str | None] = {}
        """By the hash of what was pruned: that of what is left of it, None for nothing."""

    def holds(self, digest: str) -> bool:
        """Whether this is the hash of something that was pruned."""
        self._refresh()
        return digest in self._left

    def left_of(self, digests: Iterable[str]) -> dict[str, bytes]:
        """What is left of those that were pruned, by the hash that they had."""
        self._refresh()
        pruned = {digest: self._left[digest] for digest in digests if digest in self._left}
        stubs = self._store.blobs({stub for stub in pruned.values() if stub is not None})
        found = {}
        for digest, stub in pruned.items():
            if stub is None:
                found[digest] = ARCHIVED.encode()
            elif stub in stubs:
                found[digest] = stubs[stub]
        return found

    def bytes_of(self, digest: str) -> bytes:
        """What is left of a blob that the store does not have. Raises `Missing`."""
        found = self.left_of([digest])
        if digest not in found:
            raise Missing(f"no blob {digest} in this store")
        return found[digest]

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
    """Many stored messages at once, in their packed form, by address; of those that were pruned
    what is left. Those that are missing are left out."""
    wanted = set(addresses)
    found = store.blobs(wanted)
    absent = wanted - found.keys()
    return found | Archives(store).left_of(absent) if absent else found
