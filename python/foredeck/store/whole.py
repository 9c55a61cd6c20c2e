"""What a store must list, beyond what `Store` asks for, so that it can be copied as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from foredeck.model.documents import Document
from foredeck.store.protocol import LocalStore, Origin, Store, Token

PAGE = 500
"""Transactions that are listed at once."""
DIGESTS = 100_000
"""Blobs that are listed at once: for each page XTDB looks at all of them."""


@dataclass(frozen=True, slots=True)
class Record:
    """One transaction: its token and time, and the documents that it brought."""

    origin: Origin
    changes: tuple[tuple[str, str], ...]
    """`(id, type)` of each version, in the transaction's own order."""


class WholeStore(Store, Protocol):
    """A store that can list everything that is in it."""

    def records(self, after: Token | None, limit: int) -> Sequence[Record]:
        """Transactions in the order in which they came in, those without versions too.

        Raises `Missing` for an unknown token.
        """

    def documents(self, record: Record) -> list[Document]:
        """The versions that a transaction brought, in its order, with their content."""

    def digests(self, after: str, limit: int) -> Sequence[str]:
        """SHA-256 of the blobs that come after `after`, in ascending order."""


def records_of(store: WholeStore) -> Iterator[Record]:
    """All transactions, in the order in which they came in; also those that come meanwhile."""
    token: Token | None = None
    while page := store.records(token, PAGE):
        yield from page
        token = page[-1].origin.token


def digests_of(store: WholeStore | LocalStore) -> Iterator[str]:
    """The SHA-256 of all blobs, in ascending order."""
    last = ""
    while page := store.digests(last, DIGESTS):
        yield from page
        last = page[-1]
