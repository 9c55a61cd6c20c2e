"""The store of an engine that works with XTDB: a local copy that never waits for the database.

Every commit goes into the local copy, an SQLite store, in one transaction with a note that it waits
for XTDB; a thread of its own delivers it there under the same token and time (`worker.py`). Reads
are local. What other machines have written is known by name and fetched when it is first asked for.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from foredeck.config import Config
from foredeck.errors import Conflict, Missing, StoreUnavailable
from foredeck.model.documents import Document
from foredeck.store.protocol import (
    Advance,
    Batch,
    Change,
    Head,
    Lineage,
    Notify,
    Origin,
    Record,
    Scalar,
    ScanMark,
    Token,
    order_of,
    portions,
    silent,
)
from foredeck.store.references import Archives
from foredeck.store.sqlite.adapter import SqliteStore, open_sqlite
from foredeck.xtdb.journal import Backlog, Journal, JournalBounds, MissingVersions
from foredeck.xtdb.link import Link, copy_file, link_of
from foredeck.xtdb.worker import Worker

if TYPE_CHECKING:
    from foredeck.xtdb.database.adapter import XtdbStore
    from foredeck.xtdb.database.documents import StoredVersion

D = TypeVar("D", bound=Document)
T = TypeVar("T")

log = logging.getLogger(__name__)

PATIENCE, _COMMAND_PATIENCE = 2.0, 90.0
"""How many seconds the first read waits to learn what others have written: of an engine, behind
which a model call waits; of a command, which reports nothing before it has read everything. A node
starts in less than the latter."""
DELIVERY_PATIENCE = 5.0
"""How many seconds a commit that XTDB itself decides waits for what was written before it."""
CLOSE_SECONDS = 1.5
"""How long closing waits for what is on its way to XTDB."""
_IDLE_CLOSE_SECONDS = 0.3
_DURABLE = frozenset({"call"})
"""Types of documents that are on the disk, not only with the system, when a commit returns."""


def open_journaled(
    file: Path,
    link: Link,
    bounds: JournalBounds,
    *,
    notify: Notify = silent,
    lazy: bool = False,
    patience: float = PATIENCE,
    busy_timeout_ms: int = 800,
) -> JournaledStore:
    """Open the local copy in `file`, made where there is none, of the store that `link` reaches.

    XTDB may be away; what was committed is delivered when it is back. `notify` says to the user
    that it is away and that it is back. `lazy`: XTDB is not contacted before that is needed.
    `patience`: how many seconds the first read waits for XTDB, where others may have written.
    Raises `StoreUnavailable` where the file cannot be used, or XTDB never can.
    """
    store = JournaledStore(file, link, bounds, notify, patience, busy_timeout_ms)
    if not lazy or not store.has_all:
        store.start()
    return store


def open_copy(config: Config, *, notify: Notify = silent, lazy: bool = False) -> JournaledStore:
    """The local copy of the configured XTDB, and the journal of what waits for it."""
    bounds = JournalBounds(config.xtdb.journal_entries, config.xtdb.journal_mib * 2**20)
    return open_journaled(
        copy_file(config),
        link_of(config, notify),
        bounds,
        notify=notify,
        lazy=lazy,
        patience=_COMMAND_PATIENCE if lazy else PATIENCE,
        busy_timeout_ms=config.sqlite.busy_timeout_ms,
    )


class JournaledStore:
    """`foredeck.store.protocol.Store` in a local copy of XTDB's. Made by `open_journaled`.

    A read raises `StoreUnavailable` where the answer is known to be in XTDB alone, and that does
    not answer: what is only out of reach is never reported as absent.
    """

    def __init__(
        self,
        file: Path,
        link: Link,
        bounds: JournalBounds,
        notify: Notify,
        patience: float,
        busy_timeout_ms: int,
    ) -> None:
        # The journal's tables go into a file that is a store already, whoever makes it first.
        open_sqlite(file, busy_timeout_ms=busy_timeout_ms).close()
        self._journal = Journal(file, bounds, busy_timeout_ms)
        self._queue, self._missing = self._journal.queue, self._journal.missing
        link.check(first=not self._missing.has_followed)
        self._copy = open_sqlite(file, busy_timeout_ms=busy_timeout_ms, within=self._queue.add)
        self._archives = Archives(self)
        self._worker = Worker(file, bounds, link, notify, busy_timeout_ms)
        self._fetcher = Fetcher(self._copy, self._missing, self._worker, link, busy_timeout_ms)
        self._link = link
        self._notify = notify
        self._settle_until = time.monotonic() + patience
        self._started = False
        self._closed = False
        self._has_written = False
        self.has_all = link.is_new() or (not link.shared and self._missing.has_followed)
        """Whether no other process can have written anything, as far as was known at the start."""
        self._settled = self.has_all

    def start(self) -> None:
        """Contact XTDB, from now on."""
        if not self._started:
            self._started = True
            self._worker.start()

    @property
    def backlog(self) -> Backlog:
        """What waits for XTDB."""
        return self._queue.backlog()

    @property
    def trouble(self) -> str:
        """What a user should see at a glance: that XTDB is away, or has refused; else empty."""
        if quarantined := self._queue.quarantined():
            return f"XTDB refused {quarantined}"
        return f"XTDB away, {self.backlog.entries} wait" if self._worker.away else ""

    @property
    def away_because(self) -> str:
        """Why XTDB does not answer at the moment; empty where it does, as far as is known."""
        return str(self._worker.outage) if self._worker.away else ""

    # Writing

    def commit(self, batch: Batch, *, origin: Origin | None = None) -> Token:
        """See `Store.commit`. Raises `JournalFull` when too much waits for XTDB.

        `batch.expect` is decided on the local copy, with all that is known to be in XTDB.
        """
        self._worker.note_use()
        self._bring([*(document.id for document in batch.puts), *batch.expect], needed=False)
        if not self._has_written:
            self._journal.renew_tokens()
            self._has_written = True
        # A prompt goes out once its call record is committed, and has to be found again after a
        # power loss, when XTDB may not have it yet. So that commit waits for the disk; all that
        # came before it lies in the same log and is on the disk with it.
        durable = origin is not None or any(put.type in _DURABLE for put in batch.puts)
        self._copy.set_synchronous("full" if durable else "normal")
        token = self._copy.commit(batch, origin=origin)
        self.start()
        self._worker.note_use()
        self._worker.wake()
        return token

    @property
    def local(self) -> JournaledStore:
        """See `Store.local`."""
        return self

    @property
    def is_shared(self) -> bool:
        """See `LocalStore.is_shared`."""
        return self._link.shared

    def commit_for_all(self, batch: Batch) -> Token:
        """See `LocalStore.commit_for_all`. What this machine wrote before is delivered first,
        since the batch may build on it. Waits some seconds for that, and for the answer."""
        if not self._link.shared:
            return self.commit(batch)
        self.start()
        self._settle()
        if not self._worker.wait_for_delivery(self._queue, DELIVERY_PATIENCE):
            raise StoreUnavailable(
                "XTDB is away, or does not keep up with what this machine writes"
            )
        return self._fetcher.commit(batch)

    # Reading

    def get(self, id: str, kind: type[D], at: Token | None = None) -> D | None:
        """See `Store.get`."""
        self._bring([id], at)
        return self._copy.get(id, kind, at)

    def head(self, id: str, at: Token | None = None) -> Head | None:
        """See `Store.head`."""
        self._bring([id], at)
        return self._copy.head(id, at)

    def heads(self, ids: Iterable[str]) -> dict[str, Head]:
        """See `Store.heads`."""
        wanted = list(ids)
        self._bring(wanted)
        return self._copy.heads(wanted)

    def history(self, id: str) -> list[Head]:
        """See `Store.history`."""
        self._bring([id])
        return self._copy.history(id)

    def query(
        self,
        type: str,
        where: Mapping[str, Scalar | None] | None = None,
        *,
        limit: int | None = None,
    ) -> list[Head]:
        """See `Store.query`. Where XTDB is away, of what this machine has."""
        self._fetch_found(type, where)
        return self._copy.query(type, where, limit=limit)

    def blob(self, digest: str) -> bytes:
        """See `Store.blob`."""
        try:  # also what was pruned here, of which XTDB has no more
            return self._copy.blob(digest)
        except Missing:
            found = self.blobs([digest])
        return found[digest] if digest in found else self._archives.bytes_of(digest)

    def blobs(self, digests: Iterable[str]) -> dict[str, bytes]:
        """See `Store.blobs`. Those that other machines have put are kept once they are fetched."""
        wanted = list(digests)
        found = self._copy.blobs(wanted)
        absent = [digest for digest in wanted if digest not in found]
        if absent and self._missing.has_foreign:
            found |= self._fetcher.fetch_blobs(absent)
        return found

    def changes_since(self, token: Token | None, *, limit: int = 1000) -> Sequence[Change]:
        """See `Store.changes_since`, in the order in which they came into the local copy."""
        return self._copy.changes_since(token, limit=limit)

    def transactions(self, tokens: Iterable[Token]) -> list[Origin]:
        """See `Store.transactions`."""
        wanted = list(tokens)
        self._fetcher.fetch_transactions(wanted)
        return self._copy.transactions(wanted)

    def needed(
        self, digests: Iterable[str], gone: Collection[str], advance: Advance = lambda: None
    ) -> tuple[set[str], ScanMark]:
        """See `LocalStore.needed`. What only XTDB has is brought here first."""
        self._settle()
        for ids in self._missing.pages_of_ids():
            if not self._fetcher.fetch(ids):
                raise StoreUnavailable(
                    "XTDB cannot be reached, and other machines have written to it: whether they "
                    "need the same texts is not known here"
                )
            advance()
        return self._copy.needed(digests, gone, advance, self.blobs)

    def records(self, after: Token | None, limit: int) -> list[Record]:
        """See `Store.records`, of the local copy."""
        return self._copy.records(after, limit)

    def documents(self, record: Record) -> list[Document]:
        """See `Store.documents`, of the local copy."""
        return self._copy.documents(record)

    def digests(self, after: str, limit: int) -> list[str]:
        """See `Store.digests`, of the local copy."""
        return self._copy.digests(after, limit)

    def fetch_all(self, advance: Advance = lambda: None) -> bool:
        """See `LocalStore.fetch_all`."""
        self._settle()
        for tokens in self._missing.pages_of_transactions():
            if not self._fetcher.fetch_whole(tokens):
                return False
            advance()
        return not self._worker.away

    def lineage(self) -> Lineage:
        """See `LocalStore.lineage`, of the local copy."""
        return self._copy.lineage()

    def latest(self) -> Token | None:
        """See `Store.latest`, of the local copy."""
        return self._copy.latest()

    def close(self) -> None:
        """See `Store.close`. What is on its way to XTDB gets a moment; the rest is kept."""
        if self._closed:
            return
        self._closed = True
        if self._started:
            self._worker.stop(CLOSE_SECONDS if self.backlog.entries else _IDLE_CLOSE_SECONDS)
        self._fetcher.close()
        self._journal.close()
        self._copy.close()

    # What other machines wrote

    def _fetch_found(self, type: str, where: Mapping[str, Scalar | None] | None) -> None:
        """Fetch what a query would find in XTDB."""
        self._settle()
        if self._missing.any_of_type(type):
            self._fetcher.fetch_found(type, where)

    def _bring(self, ids: Sequence[str], at: Token | None = None, *, needed: bool = True) -> None:
        """Fetch what is missing of these documents, as of `at` too. `needed`: raise
        `StoreUnavailable` for one of which no version is here; older versions of others will do."""
        self._settle()
        if at is not None:
            self._fetcher.fetch_transactions([at])
        missing = self._missing.of_documents(ids)
        if not missing or self._fetcher.fetch(list(missing)) or not needed:
            return
        held = self._copy.heads(missing)
        if absent := [id for id in missing if id not in held]:
            raise StoreUnavailable(
                f"XTDB is away, and {absent[0]!r} is only there: another machine has written it"
            )

    def _settle(self) -> None:
        """Once, wait a little until it is known what others have written."""
        self._worker.note_use()
        if not self._settled:
            self._settled = True
            left = self._settle_until - time.monotonic()
            if not self._worker.wait_for_changes(max(0.0, left)):
                self._link.check_error(self._worker.outage)
                text = "XTDB does not answer yet: only this machine's copy is read."
                self._notify("warning", text)


# Bringing versions that only XTDB has into the local copy, when they are read

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
        self._missing.add(Change(v.token, v.time_ms, id, v.type) for id, v in found.items())
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
            self._for_incoming().commit_all(_by_transaction(remote.versions(wanted)))

    def close(self) -> None:
        """Close the connections to XTDB and to the file."""
        for connection in (self._remote, self._incoming):
            if connection is not None:
                connection.close()

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
