"""The store of an engine that works with XTDB: a local copy that never waits for the database.

Every commit goes into the local copy, an SQLite store, in one transaction with a note that it waits
for XTDB; a thread of its own delivers it there under the same token and time (`worker.py`). Reads
are local. What other machines have written is known by name and fetched when it is first asked for
(`fetching.py`).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from foredeck.config import Config
from foredeck.errors import Missing, StoreUnavailable
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
    silent,
)
from foredeck.store.references import Archives
from foredeck.store.sqlite.adapter import SqliteStore, open_sqlite
from foredeck.xtdb.journal.fetching import Fetcher
from foredeck.xtdb.journal.journal import Backlog, Journal, JournalBounds
from foredeck.xtdb.journal.link import Link, copy_file, link_of
from foredeck.xtdb.journal.worker import Worker

D = TypeVar("D", bound=Document)

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
    # The journal's tables go into a file that is a store already, whoever makes it first.
    open_sqlite(file, busy_timeout_ms=busy_timeout_ms).close()
    journal = Journal(file, bounds, busy_timeout_ms)
    link.check(first=not journal.missing.has_followed)
    copy = open_sqlite(file, busy_timeout_ms=busy_timeout_ms, within=journal.queue.add)
    worker = Worker(file, bounds, link, notify, busy_timeout_ms)
    fetcher = Fetcher(copy, journal.missing, worker, link, busy_timeout_ms)
    store = JournaledStore(copy, journal, worker, fetcher, link, notify, patience)
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
        copy: SqliteStore,
        journal: Journal,
        worker: Worker,
        fetcher: Fetcher,
        link: Link,
        notify: Notify,
        patience: float,
    ) -> None:
        self._copy = copy
        self._queue = journal.queue
        self._missing = journal.missing
        self._journal = journal
        self._archives = Archives(self)
        self._worker = worker
        self._fetcher = fetcher
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

    def origins(self, type: str, session: str) -> dict[str, Origin]:
        """See `LocalStore.origins`; as `query`."""
        self._fetch_found(type, {"session": session})
        return self._copy.origins(type, session)

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
            waits = self.backlog.entries > 0
            self._worker.stop(CLOSE_SECONDS if waits else _IDLE_CLOSE_SECONDS)
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
