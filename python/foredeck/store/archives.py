"""What a store gives in place of texts that were pruned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from foredeck.errors import Missing
from foredeck.model.records import ARCHIVED

if TYPE_CHECKING:
    from foredeck.store.protocol import Store, Token


class Archives:
    """Everything that was pruned in a store. Asked only about blobs that the store does not have,
    so that a store where nothing was pruned never pays for it."""

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
