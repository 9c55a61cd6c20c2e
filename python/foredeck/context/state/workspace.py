"""One transaction in the making: what is written so far can be read before it is committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from foredeck.model.documents import Document
from foredeck.model.messages import put_blob
from foredeck.store.protocol import Batch, Head, Store, Token

PENDING = Token("")
"""Token of a head that is not committed yet."""


class Workspace:
    """Collects documents and blobs, then commits them in one go."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.blobs: dict[str, bytes] = {}
        self._documents: dict[str, Document] = {}
        self._expect: dict[str, Token | None] = {}
        self._stored: dict[str, Head | None] = {}
        """What the store holds of the documents that were asked for ahead."""

    def put(self, document: Document, *, new: bool = False) -> None:
        """Write a sealed document; a later one with the same id takes its place.

        `new`: none is stored with this id, or committing raises `Conflict`.
        """
        self._documents[document.id] = document
        if new:
            self._expect[document.id] = None

    def put_over(self, document: Document, head: Head | None) -> None:
        """As `put`, on top of this version: where that is not the newest, committing raises
        `Conflict`."""
        self._documents[document.id] = document
        self._expect[document.id] = None if head is None else head.token

    def put_bytes(self, data: bytes) -> str:
        """Store bytes; returns their address."""
        return put_blob(data, self.blobs)

    def head(self, id: str) -> Head | None:
        """The newest version of a document, this transaction's own included."""
        document = self._documents.get(id)
        if document is None:
            return self._stored[id] if id in self._stored else self.store.head(id)
        fields = document.model_dump(exclude={"content"})
        return Head(document.id, document.type, PENDING, 0, fields)

    def look_up(self, ids: Iterable[str]) -> None:
        """Ask for the newest versions of many documents at once, that are about to be asked for one
        by one. The answers hold until this transaction ends."""
        wanted = [id for id in dict.fromkeys(ids) if id not in self._stored]
        found = self.store.heads(wanted) if wanted else {}
        self._stored.update((id, found.get(id)) for id in wanted)

    @contextmanager
    def looked_up(self, ids: Iterable[str]) -> Iterator[None]:
        """As `look_up`, but the answers hold for this block alone."""
        known = set(self._stored)
        self.look_up(ids)
        try:
            yield
        finally:
            self._stored = {id: head for id, head in self._stored.items() if id in known}

    @property
    def pending(self) -> Mapping[str, Document]:
        """The documents written so far, by id."""
        return self._documents

    @property
    def empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not self._documents and not self.blobs

    def discard_known(self) -> None:
        """Commit what is new; blobs alone belong to messages that are stored already."""
        if self._documents:
            self.commit()
        self.discard()

    def commit(self) -> Token:
        """Commit and start afresh. On failure everything stays collected."""
        batch = Batch(list(self._documents.values()), dict(self.blobs), dict(self._expect))
        token = self.store.commit(batch)
        self.discard()
        return token

    def discard(self) -> None:
        """Start afresh, without a commit."""
        self._documents.clear()
        self._expect.clear()
        self._stored.clear()
        self.blobs.clear()
