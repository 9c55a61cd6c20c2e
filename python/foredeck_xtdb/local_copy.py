"""An engine's store before XTDB: a local copy that never waits for the database.

A thread delivers commits under the same token and time (`worker.py`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from foredeck.config import Config
from foredeck.errors import Conflict, StoreUnavailable
from foredeck.model.documents import Document
from foredeck.store.protocol import (
    Advance,
    Batch,
    Change,
    Notify,
    Origin,
    Remote,
    Scalar,
    Token,
    order_of,
    portions,
    silent,
)
from foredeck.store.store import Store, open_sqlite
from foredeck_xtdb.journal import Backlog, Journal, JournalBounds
from foredeck_xtdb.link import Link, copy_file, link_of
from foredeck_xtdb.worker import Worker

if TYPE_CHECKING:
    from foredeck_xtdb.database.adapter import Database
    from foredeck_xtdb.database.documents import StoredVersion

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
_AT_ONCE = 200
"""Transactions written under one lock on the copy."""
_RETRY_S = 10.0
"""Seconds without a new attempt after XTDB did not answer."""


def open_journaled(
    file: Path,
    link: Link,
    bounds: JournalBounds,
    *,
    notify: Notify = silent,
    lazy: bool = False,
    patience: float = PATIENCE,
    busy_timeout_ms: int = 800,
) -> Store:
    """Opens the local copy in `file` of the store that `link` reaches, which may be away.

    `lazy`: XTDB is not contacted before it is needed. Raises `StoreUnavailable` if the file cannot
    be used, or XTDB never can.
    """
    store = open_sqlite(file, busy_timeout_ms=busy_timeout_ms)
    remote = XtdbRemote(store, link, bounds, notify, patience, busy_timeout_ms)
    store.remote = remote
    if not lazy or not remote.has_all:
        remote.start()
    return store


def open_copy(config: Config, *, notify: Notify = silent, lazy: bool = False) -> Store:
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


def remote_of(store: Store) -> XtdbRemote:
    """What a local copy delivers to."""
    assert isinstance(store.remote, XtdbRemote)
    return store.remote


class XtdbRemote(Remote):
    """XTDB behind a local copy.

    A read raises `StoreUnavailable` if only XTDB has the answer and is away: what is out of reach
    is never reported as absent.
    """

    def __init__(
        self,
        store: Store,
        link: Link,
        bounds: JournalBounds,
        notify: Notify,
        patience: float,
        busy_timeout_ms: int,
    ) -> None:
        self._journal = Journal(store, bounds)
        self._queue, self._missing = self._journal.queue, self._journal.missing
        link.check(first=not self._missing.has_followed)
        store.within = self._queue.add
        self._file = open_sqlite(
            store.path, busy_timeout_ms=busy_timeout_ms, within=self._missing.note_fetched
        )
        """The copy alone: what it has, and for what comes from XTDB, which is not queued."""
        self._worker = Worker(store.path, bounds, link, notify, busy_timeout_ms)
        self._link = link
        self._notify = notify
        self._settle_until = time.monotonic() + patience
        self._started = False
        self._closed = False
        self._has_written = False
        self._database: Database | None = None
        self._ask_again_at = 0.0
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

    @property
    def is_shared(self) -> bool:
        return self._link.shared

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._started:
            self._worker.stop(CLOSE_SECONDS if self.backlog.entries else _IDLE_CLOSE_SECONDS)
        if self._database is not None:
            self._database.close()
        self._file.close()

    # Writing

    def before_commit(self, batch: Batch, origin: Origin | None) -> None:
        self._worker.note_use()
        self._bring([*(document.id for document in batch.puts), *batch.expect])
        if not self._has_written:
            self._journal.renew_tokens()
            self._has_written = True
        # A prompt goes out once its call record is committed, and has to be found again after a
        # power loss, when XTDB may not have it yet. So that commit waits for the disk; all that
        # came before it lies in the same log and is on the disk with it.
        durable = origin is not None or any(put.type in _DURABLE for put in batch.puts)
        self._journal.execute(f"PRAGMA synchronous = {'full' if durable else 'normal'}")

    def after_commit(self) -> None:
        self.start()
        self._worker.note_use()
        self._worker.wake()

    def commit(self, batch: Batch) -> Token:
        """Delivers earlier commits, writes to XTDB itself, then here. Raises `Conflict`, after
        fetching what others wrote; `StoreUnavailable`."""
        self.start()
        self._settle()
        if not self._worker.wait_for_delivery(self._queue, DELIVERY_PATIENCE):
            raise StoreUnavailable(
                "XTDB is away, or does not keep up with what this machine writes"
            )

        def write(database: Database) -> Origin | Conflict:
            try:
                (origin,) = database.transactions([database.commit(batch)])
            except Conflict as error:
                self._learn(database, [*batch.expect])
                return error
            return origin

        written = self._ask(write)
        if written is None:
            raise StoreUnavailable("XTDB is away: it has to decide this, and was not reached")
        if isinstance(written, Conflict):
            raise written
        self._file.commit(Batch(batch.puts, batch.blobs), origin=written)
        return written.token

    def _learn(self, database: Database, ids: Sequence[str]) -> None:
        versions = database.newest(ids)
        self._note(versions)
        if wanted := self._missing.of_documents(ids):
            self._file.commit_all(_by_transaction(database.versions(wanted, versions)))

    def _note(self, versions: Mapping[str, StoredVersion]) -> None:
        self._missing.add(Change(v.token, v.time_ms, id, v.type) for id, v in versions.items())

    # Bringing what only XTDB has into the local copy, when it is read

    def fetch(self, ids: Sequence[str], at: Token | None = None) -> None:
        missing = self._bring(ids, at)
        held = self._file.heads(missing) if missing else {}
        if absent := [id for id in missing if id not in held]:
            raise StoreUnavailable(
                f"XTDB is away, and {absent[0]!r} is only there: another machine has written it"
            )

    def _bring(self, ids: Sequence[str], at: Token | None = None) -> list[str]:
        """Fetches what is missing of documents; returns those of which it could not."""
        self._settle()
        if at is not None:
            self.fetch_transactions([at])
        missing = list(self._missing.of_documents(ids))
        return [] if not missing or self._fetch_documents(missing) else missing

    def fetch_query(self, type: str, where: Mapping[str, Scalar | None] | None) -> None:
        """Fetches what a query finds in XTDB, and newer versions of what it finds here."""
        self._settle()
        if not self._missing.any_of_type(type):
            return
        versions = self._ask(lambda database: database.find(type, where))
        if versions is None:
            return
        self._note(versions)
        ids = [*versions, *(head.id for head in self._file.query(type, where))]
        if missing := self._missing.of_documents(ids):
            self._fetch_documents(list(missing), versions)

    def fetch_transactions(self, tokens: Sequence[Token]) -> None:
        """Fetches what is missing of these transactions' documents."""
        if self._missing.any() and (missing := self._missing.of_transactions(tokens)):
            self._fetch_documents(list(missing))

    def fetch_blobs(self, digests: Sequence[str]) -> dict[str, bytes]:
        if not self._missing.has_foreign:
            return {}
        blobs = self._ask(lambda database: database.blobs(digests)) or {}
        latest = self._file.latest()
        if blobs and latest is not None:
            # Blobs need no transaction of their own: they are added to one that is here.
            (origin,) = self._file.transactions([latest])
            self._file.commit(Batch(blobs=blobs), origin=origin)
        return blobs

    def fetch_documents(self, advance: Advance) -> None:
        self._settle()
        for ids in self._missing.pages_of_ids():
            if not self._fetch_documents(ids):
                raise StoreUnavailable(
                    "XTDB cannot be reached, and other machines have written to it: whether they "
                    "need the same texts is not known here"
                )
            advance()

    def fetch_all(self, advance: Advance) -> bool:
        """Fetches transactions as wholes, since a layer starts over for what is added later."""
        self._settle()
        for tokens in self._missing.pages_of_transactions():
            if not self._fetch(partial(self._missing.of_transactions, tokens)):
                return False
            advance()
        return not self._worker.away

    def _fetch_documents(
        self, ids: Sequence[str], versions: Mapping[str, StoredVersion] | None = None
    ) -> bool:
        """Fetches every missing version of these documents; returns whether all are here.

        `versions`: newest ones that a query has just read.
        """
        return self._fetch(lambda: self._missing.of_documents(ids), versions)

    def _fetch(
        self,
        missing: Callable[[], Mapping[str, Collection[Token]]],
        versions: Mapping[str, StoredVersion] | None = None,
    ) -> bool:
        def fetch(database: Database) -> bool:
            documents = database.versions(missing(), versions)
            for portion in portions(_by_transaction(documents), _AT_ONCE):
                self._file.commit_all(portion)
            return True

        return self._ask(fetch) or False

    def _ask(self, ask: Callable[[Database], T]) -> T | None:
        """What XTDB answers; None while it is away."""
        if self._worker.away or time.monotonic() < self._ask_again_at:
            return None
        try:
            if self._database is None:
                self._database = self._link.look()
            return ask(self._database)
        except StoreUnavailable as error:
            log.warning("XTDB was asked and is away: %s", error)
            self._ask_again_at = time.monotonic() + _RETRY_S
            if self._database is not None:
                self._database.close()
                self._database = None
            return None

    def _settle(self) -> None:
        self._worker.note_use()
        if not self._settled:
            self._settled = True
            left = self._settle_until - time.monotonic()
            if not self._worker.wait_for_changes(max(0.0, left)):
                self._link.check_error(self._worker.outage)
                text = "XTDB does not answer yet: only this machine's copy is read."
                self._notify("warning", text)


def _by_transaction(found: Iterable[tuple[Origin, Document]]) -> list[tuple[Origin, Batch]]:
    groups: dict[Token, tuple[Origin, Batch]] = {}
    for origin, document in found:
        groups.setdefault(origin.token, (origin, Batch()))[1].puts.append(document)
    return sorted(groups.values(), key=lambda group: order_of(group[0]))
