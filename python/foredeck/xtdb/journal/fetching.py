"""Bringing versions that only XTDB has into the local copy, when they are read."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from foredeck.errors import Conflict, StoreUnavailable
from foredeck.model.documents import Document
from foredeck.store.protocol import Batch, Change, Origin, Scalar, Token, order_of, portions
from foredeck.store.sqlite.adapter import SqliteStore, open_sqlite
from foredeck.xtdb.journal.journal import MissingVersions
from foredeck.xtdb.journal.link import Link
from foredeck.xtdb.journal.worker import Worker

if TYPE_CHECKING:
    from foredeck.xtdb.database.adapter import XtdbStore
    from foredeck.xtdb.database.documents import StoredVersion

T = TypeVar("T")

log = logging.getLogger(__name__)

_AT_ONCE = 200
"""How many transactions are written under one lock on the copy."""
_RETRY_S = 10.0
"""How long XTDB is not asked again after it did not answer: each attempt holds up a read."""


@dataclass(slots=True)
class Fetcher:
    """What one store reads from XTDB for its local copy."""

    _copy: SqliteStore
    _missing: MissingVersions
    _worker: Worker
    _link: Link
    _busy_timeout_ms: int
    _incoming: SqliteStore | None = None
    _remote: XtdbStore | None = None
    _ask_again_at: float = 0.0

    def fetch(self, ids: Sequence[str], known: Mapping[str, StoredVersion] | None = None) -> bool:
        """Bring every missing version of the documents `ids`; whether all are here now.

        `known`: newest versions that a query has read a moment ago. Where XTDB stops answering,
        some may have come.
        """
        return self._bring(lambda: self._missing.of_documents(ids), known or {})

    def fetch_whole(self, tokens: Sequence[str]) -> bool:
        """Bring all that is missing of these transactions, and of each all at once: a layer would
        have to begin again for what is added to one later. Whether it is here now."""
        return self._bring(lambda: self._missing.of_transactions(tokens), {})

    def _bring(
        self,
        missing: Callable[[], Mapping[str, Collection[Token]]],
        known: Mapping[str, StoredVersion],
    ) -> bool:
        def bring(remote: XtdbStore) -> bool:
            found = _by_transaction(remote.versions(missing(), known))
            for portion in portions(found, _AT_ONCE):
                self._for_incoming().commit_all(portion)
            return True

        return self._ask(bring) or False

    def fetch_transactions(self, tokens: Sequence[Token]) -> None:
        """Bring what is missing of the documents of these transactions, if XTDB answers."""
        if self._missing.any() and (missing := self._missing.of_transactions(tokens)):
            self.fetch(list(missing))

    def fetch_found(self, type: str, where: Mapping[str, Scalar | None] | None) -> None:
        """Bring what a query finds in XTDB, and what it finds here but is not the newest there."""
        found = self._ask(lambda remote: remote.find(type, where))
        if found is None:
            return
        changes = [Change(v.token, v.time_ms, id, v.type) for id, v in found.items()]
        self._missing.add(changes)
        ids = [*found, *(head.id for head in self._copy.query(type, where))]
        if missing := self._missing.of_documents(ids):
            self.fetch(list(missing), found)

    def fetch_blobs(self, digests: Sequence[str]) -> dict[str, bytes]:
        """Those of the blobs that XTDB has, which are kept here from now on."""
        found = self._ask(lambda remote: remote.blobs(digests)) or {}
        latest = self._copy.latest()
        if found and latest is not None:
            # Blobs need no transaction of their own: they are added to one that is here.
            (origin,) = self._copy.transactions([latest])
            self._for_incoming().commit(Batch(blobs=found), origin=origin)
        return found

    def commit(self, batch: Batch) -> Token:
        """Write to XTDB itself, then here. Raises `Conflict` where `batch.expect` does not hold
        there, with what others wrote meanwhile brought here; `StoreUnavailable` where it is away.
        """

        def write(remote: XtdbStore) -> Origin | Conflict:
            try:
                (origin,) = remote.transactions([remote.commit(batch)])
            except Conflict as error:
                self._learn(remote, [*batch.expect])
                return error
            return origin

        written = self._ask(write)
        if written is None:
            raise StoreUnavailable("XTDB is away: it has to decide this, and was not reached")
        if isinstance(written, Conflict):
            raise written
        self._for_incoming().commit(Batch(batch.puts, batch.blobs), origin=written)
        return written.token

    def _learn(self, remote: XtdbStore, ids: Sequence[str]) -> None:
        """Bring the newest versions of documents that others have changed a moment ago."""
        heads = remote.heads(ids).values()
        self._missing.add(Change(head.token, head.time_ms, head.id, head.type) for head in heads)
        if wanted := self._missing.of_documents(ids):
            found = _by_transaction(remote.versions(wanted))
            self._for_incoming().commit_all(found)

    def close(self) -> None:
        """Close the connections to XTDB and to the file."""
        if self._remote is not None:
            self._remote.close()
        if self._incoming is not None:
            self._incoming.close()

    def _for_incoming(self) -> SqliteStore:
        """The local copy, for what comes from XTDB: it is crossed off as missing, and not queued
        for delivery."""
        if self._incoming is None:
            self._incoming = open_sqlite(
                self._copy.path,
                busy_timeout_ms=self._busy_timeout_ms,
                within=self._missing.note_fetched,
            )
        return self._incoming

    def _ask(self, ask: Callable[[XtdbStore], T]) -> T | None:
        """What XTDB answers; None where it is away."""
        if self._worker.away or time.monotonic() < self._ask_again_at:
            return None
        try:
            if self._remote is None:
                self._remote = self._link.look()
            return ask(self._remote)
        except StoreUnavailable as error:
            log.warning("XTDB was asked and is away: %s", error)
            self._ask_again_at = time.monotonic() + _RETRY_S
            if self._remote is not None:
                self._remote.close()
                self._remote = None
            return None


def _by_transaction(found: Iterable[tuple[Origin, Document]]) -> list[tuple[Origin, Batch]]:
    """Versions as the transactions that they came with, oldest first."""
    groups: dict[Token, tuple[Origin, Batch]] = {}
    for origin, document in found:
        groups.setdefault(origin.token, (origin, Batch()))[1].puts.append(document)
    return sorted(groups.values(), key=lambda group: order_of(group[0]))
