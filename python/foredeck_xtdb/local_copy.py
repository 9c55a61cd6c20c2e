"""The store of an engine that works with XTDB: a local copy that never waits for the database.

A thread delivers commits under the same token and time (`worker.py`).
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
from foredeck_xtdb.journal import Backlog, Journal, JournalBounds, MissingVersions
from foredeck_xtdb.link import Link, copy_file, link_of
from foredeck_xtdb.worker import Worker

if TYPE_CHECKING:
    from foredeck_xtdb.database.adapter import XtdbStore
    from foredeck_xtdb.database.documents import StoredVersion

D = TypeVar("D", bound=Document)
T = TypeVar("T")

log = logging.getLogger(__name__)

PATIENCE, _COMMAND_PATIENCE = 2.0, 90.0
"""Seconds that the first read waits for others' writes: of an engine, and of a command, which reads
everything."""
DELIVERY_PATIENCE = 5.0
"""Seconds that a commit decided by XTDB waits for earlier ones."""
CLOSE_SECONDS = 1.5
_IDLE_CLOSE_SECONDS = 0.3
_DURABLE = frozenset({"call"})
"""Types that are on the disk when a commit returns."""


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
    """Opens the local copy in `file` of the store that `link` reaches, which may be away.

    `lazy`: XTDB is not contacted before it is needed. Raises `StoreUnavailable` if the file cannot
    be used, or XTDB never can.
    """
    store = JournaledStore(file, link, bounds, notify, patience, busy_timeout_ms)
    if not lazy or not store.has_all:
        store.start()
    return store


def open_copy(config: Config, *, notify: Notify = silent, lazy: bool = False) -> JournaledStore:
    """The local copy of the configured XTDB, with its journal."""
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
    """`foredeck.store.protocol.Store` in a local copy of XTDB's.

    A read raises `StoreUnavailable` if only XTDB has the answer and is away: what is out of reach
    is never reported as absent.
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
        """Whether nobody else can have written anything."""
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
        if quarantined := self._queue.quarantined():
            return f"XTDB refused {quarantined}"
        return f"XTDB away, {self.backlog.entries} wait" if self._worker.away else ""

    @property
    def away_because(self) -> str:
        """Why XTDB does not answer at the moment; may be empty."""
        return str(self._worker.outage) if self._worker.away else ""

    # Writing

    def commit(self, batch: Batch, *, origin: Origin | None = None) -> Token:
        """See `Store.commit`; `expect` is decided on the local copy. Raises `JournalFull`."""
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
        return self

    @property
    def is_shared(self) -> bool:
        return self._link.shared

    def commit_for_all(self, batch: Batch) -> Token:
        """See `LocalStore.commit_for_all`; earlier commits are delivered first."""
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
        self._bring([id], at)
        return self._copy.get(id, kind, at)

    def head(self, id: str, at: Token | None = None) -> Head | None:
        self._bring([id], at)
        return self._copy.head(id, at)

    def heads(self, ids: Iterable[str]) -> dict[str, Head]:
        wanted = list(ids)
        self._bring(wanted)
        return self._copy.heads(wanted)

    def history(self, id: str) -> list[Head]:
        self._bring([id])
        return self._copy.history(id)

    def query(
        self,
        type: str,
        where: Mapping[str, Scalar | None] | None = None,
        *,
        limit: int | None = None,
    ) -> list[Head]:
        """See `Store.query`; while XTDB is away, of what this machine has."""
        self._fetch_found(type, where)
        return self._copy.query(type, where, limit=limit)

    def blob(self, digest: str) -> bytes:
        try:  # also what was pruned here, of which XTDB has no more
            return self._copy.blob(digest)
        except Missing:
            found = self.blobs([digest])
        return found[digest] if digest in found else self._archives.bytes_of(digest)

    def blobs(self, digests: Iterable[str]) -> dict[str, bytes]:
        wanted = list(digests)
        found = self._copy.blobs(wanted)
        absent = [digest for digest in wanted if digest not in found]
        if absent and self._missing.has_foreign:
            found |= self._fetcher.fetch_blobs(absent)
        return found

    def changes_since(self, token: Token | None, *, limit: int = 1000) -> Sequence[Change]:
        """See `Store.changes_since`, in the copy's order."""
        return self._copy.changes_since(token, limit=limit)

    def transactions(self, tokens: Iterable[Token]) -> list[Origin]:
        wanted = list(tokens)
        self._fetcher.fetch_transactions(wanted)
        return self._copy.transactions(wanted)

    def needed(
        self, digests: Iterable[str], gone: Collection[str], advance: Advance = lambda: None
    ) -> tuple[set[str], ScanMark]:
        """See `LocalStore.needed`; fetches what only XTDB has."""
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
        self._settle()
        if self._missing.any_of_type(type):
            self._fetcher.fetch_found(type, where)

    def _bring(self, ids: Sequence[str], at: Token | None = None, *, needed: bool = True) -> None:
        """Fetches what is missing of these documents; `needed` raises `StoreUnavailable` for one
        without any version here."""
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
"""Transactions written under one lock on the copy."""
_RETRY_S = 10.0
"""Seconds without a new attempt after XTDB did not answer."""


@dataclass(slots=True)
class Fetcher:
    """Reads from XTDB for a local copy."""

    _copy: SqliteStore
    _missing: MissingVersions
    _worker: Worker
    _link: Link
    _busy_timeout_ms: int
    _incoming: SqliteStore | None = None
    _remote: XtdbStore | None = None
    _ask_again_at: float = 0.0

    def fetch(self, ids: Sequence[str], known: Mapping[str, StoredVersion] | None = None) -> bool:
        """Fetches every missing version of these documents; returns whether all are here.

        `known`: newest versions that a query has just read.
        """
        return self._bring(lambda: self._missing.of_documents(ids), known or {})

    def fetch_whole(self, tokens: Sequence[str]) -> bool:
        """Fetches transactions as wholes, since a layer starts over for what is added later;
        returns whether they are here."""
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
        """Fetches what is missing of these transactions' documents."""
        if self._missing.any() and (missing := self._missing.of_transactions(tokens)):
            self.fetch(list(missing))

    def fetch_found(self, type: str, where: Mapping[str, Scalar | None] | None) -> None:
        """Fetches what a query finds in XTDB, and newer versions of what it finds here."""
        found = self._ask(lambda remote: remote.find(type, where))
        if found is None:
            return
        self._missing.add(Change(v.token, v.time_ms, id, v.type) for id, v in found.items())
        ids = [*found, *(head.id for head in self._copy.query(type, where))]
        if missing := self._missing.of_documents(ids):
            self.fetch(list(missing), found)

    def fetch_blobs(self, digests: Sequence[str]) -> dict[str, bytes]:
        found = self._ask(lambda remote: remote.blobs(digests)) or {}
        latest = self._copy.latest()
        if found and latest is not None:
            # Blobs need no transaction of their own: they are added to one that is here.
            (origin,) = self._copy.transactions([latest])
            self._for_incoming().commit(Batch(blobs=found), origin=origin)
        return found

    def commit(self, batch: Batch) -> Token:
        """Writes to XTDB itself, then here. Raises `Conflict`, after fetching what others wrote;
        `StoreUnavailable`."""

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
        heads = remote.heads(ids).values()
        self._missing.add(Change(head.token, head.time_ms, head.id, head.type) for head in heads)
        if wanted := self._missing.of_documents(ids):
            self._for_incoming().commit_all(_by_transaction(remote.versions(wanted)))

    def close(self) -> None:
        for connection in (self._remote, self._incoming):
            if connection is not None:
                connection.close()

    def _for_incoming(self) -> SqliteStore:
        """The copy for what comes from XTDB, which is not queued for delivery."""
        if self._incoming is None:
            self._incoming = open_sqlite(
                self._copy.path,
                busy_timeout_ms=self._busy_timeout_ms,
                within=self._missing.note_fetched,
            )
        return self._incoming

    def _ask(self, ask: Callable[[XtdbStore], T]) -> T | None:
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
    groups: dict[Token, tuple[Origin, Batch]] = {}
    for origin, document in found:
        groups.setdefault(origin.token, (origin, Batch()))[1].puts.append(document)
    return sorted(groups.values(), key=lambda group: order_of(group[0]))
