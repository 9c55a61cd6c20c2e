"""A store to which nothing is written: what is put into it is held in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from foredeck.model.documents import Document
from foredeck.store.protocol import (
    Batch,
    Head,
    Origin,
    Scalar,
    Token,
)
from foredeck.store.store import Store
from foredeck.store.versions import matches

D = TypeVar("D", bound=Document)


class Unwritten:
    """A `Store` in front of another one, which stays as it is."""

    def __init__(self, store: Store, time_ms: int) -> None:
        self._store, self._time_ms = store, time_ms
        self._heads: dict[str, Head] = {}
        self._documents: dict[str, Document] = {}
        self._blobs: dict[str, bytes] = {}
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def close(self) -> None:
        """The store behind it stays open."""

    def commit(self, batch: Batch, *, origin: Origin | None = None) -> Token:
        del origin
        self._count += 1
        token = Token(f"unwritten-{self._count}")
        self._blobs |= batch.blobs
        for document in batch.puts:
            fields = {n: v for n, v in document.model_dump().items() if n != "content"}
            self._documents[document.id] = document
            self._heads[document.id] = Head(
                document.id, document.type, token, self._time_ms, fields
            )
        return token

    def get(self, id: str, kind: type[D], at: Token | None = None) -> D | None:
        if self._holds(id, at):
            return kind.model_validate(self._documents[id].model_dump())
        return self._store.get(id, kind, at)

    def head(self, id: str, at: Token | None = None) -> Head | None:
        return self._heads[id] if self._holds(id, at) else self._store.head(id, at)

    def _holds(self, id: str, at: Token | None) -> bool:
        return id in self._heads and (at is None or str(at).startswith("unwritten-"))

    def heads(self, ids: Iterable[str]) -> dict[str, Head]:
        asked = list(ids)
        own = {id: self._heads[id] for id in asked if id in self._heads}
        return {**self._store.heads(asked), **own}

    def query(
        self,
        type: str,
        where: Mapping[str, Scalar | None] | None = None,
        *,
        limit: int | None = None,
    ) -> list[Head]:
        stored = self._store.query(type, where, limit=limit)
        own = [
            head
            for head in self._heads.values()
            if head.type == type
            and all(matches(head.fields, n, v) for n, v in (where or {}).items())
        ]
        put = {head.id for head in own}
        return [*(head for head in stored if head.id not in put), *own][:limit]

    def blob(self, digest: str) -> bytes:
        return self._blobs[digest] if digest in self._blobs else self._store.blob(digest)

    def blobs(self, digests: Iterable[str]) -> dict[str, bytes]:
        hashes = list(digests)
        own = {digest: self._blobs[digest] for digest in hashes if digest in self._blobs}
        return {**self._store.blobs(d for d in hashes if d not in own), **own}
