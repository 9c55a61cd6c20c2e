"""Opening the store and the file source that a configuration asks for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.config import Config
from foredeck.errors import ConfigError, StoreDamaged, StoreUnavailable
from foredeck.model.records import ForgottenDocument, forgotten_id
from foredeck.sources import DiskSource, FilesystemMap, Limits, Mount, default_filesystem_id
from foredeck.store.derived import drop_derived
from foredeck.store.protocol import Batch, LocalStore, Looked, Store
from foredeck.store.quarantine import put_aside
from foredeck.store.sqlite.adapter import open_sqlite

if TYPE_CHECKING:
    from foredeck.store.forgetting import Forgetting
    from foredeck.xtdb.database.adapter import XtdbStore
    from foredeck.xtdb.journal.link import Link
    from foredeck.xtdb.journal.store import JournaledStore

Tell = Callable[[str, str], None]
"""Says something to the user: a level (`info`, `warning`, `error`) and a text."""

_ENGINE_PATIENCE, _COMMAND_PATIENCE = 2.0, 90.0
"""Seconds to wait at first for what is in XTDB; a model call waits behind one. The other is longer
than a node may take to start: a command says nothing of what it has not read."""


def open_store(config: Config, *, tell: Tell | None = None, lazy: bool = False) -> LocalStore:
    """The configured store. Raises `StoreUnavailable` where it cannot be opened.

    XTDB stands behind a local copy, so that nobody waits for it: `tell` says to the user when it
    is away and when it is back; `lazy`, for commands: it is not started before that is needed, and
    then waited for.
    """
    if config.store == "xtdb":
        return open_copy(config, tell=tell, lazy=lazy)
    return open_sqlite(
        config.sqlite_file,
        synchronous=config.sqlite.synchronous,
        busy_timeout_ms=config.sqlite.busy_timeout_ms,
    )


def open_beside(
    config: Config, damage: StoreDamaged, inode: int | None, *, tell: Tell | None = None
) -> tuple[LocalStore, str]:
    """Put the damaged file aside and open a fresh one; with what to say to the user.

    `inode` is that of the damaged file (`store.aside`). Raises `StoreDamaged` where it cannot be
    put aside.
    """
    file = store_file(config)
    try:
        aside = put_aside(file, inode)
    except OSError:
        raise damage from None
    kept = f"it is kept as {aside.name}" if aside else "it was put aside by another process"
    if config.store == "xtdb":
        lost = (
            "and a new copy is made from what XTDB has. What still waited for XTDB is in the old "
            "one alone"
        )
    else:
        lost = (
            "and a fresh store takes its place. Objects and prompts of earlier sessions are in "
            "the old one"
        )
    return open_store(config, tell=tell), (
        f"{file} is damaged: {kept}, {lost}; Pi's own session files are not touched."
    )


def store_file(config: Config) -> Path:
    """The file that the engine works with: SQLite's store, or the local copy of XTDB's."""
    return copy_file(config) if config.store == "xtdb" else config.sqlite_file


def open_copy(config: Config, *, tell: Tell | None = None, lazy: bool = False) -> JournaledStore:
    """The local copy of the configured XTDB, and the journal of what waits for it."""
    # Imported here: who uses SQLite does not wait for it.
    from foredeck.xtdb.journal.store import open_journaled
    from foredeck.xtdb.journal.tables import Bounds

    say = tell or (lambda _level, _text: None)
    bounds = Bounds(config.xtdb.journal_entries, config.xtdb.journal_mib * 2**20)
    return open_journaled(
        copy_file(config),
        _link(config, say),
        bounds,
        tell=say,
        lazy=lazy,
        patience=_COMMAND_PATIENCE if lazy else _ENGINE_PATIENCE,
        busy_timeout_ms=config.sqlite.busy_timeout_ms,
    )


def copy_file(config: Config) -> Path:
    """The file of the local copy: one for each server and namespace."""
    where = "own"
    if config.xtdb.url is not None:
        where = hashlib.sha256(config.xtdb.url.rstrip("/").encode()).hexdigest()[:12]
    return config.home / "copies" / f"{where}-{config.xtdb.namespace}.db"


def _link(config: Config, tell: Tell) -> Link:
    from foredeck.xtdb.journal.link import OwnLink, ServerLink

    xtdb = config.xtdb
    if xtdb.url is None:
        return OwnLink(config.home, xtdb.topology, xtdb.namespace, xtdb.timeout_ms, tell)
    token = None if xtdb.token_file is None else _read_token(xtdb.token_file)
    return ServerLink(xtdb.url, token, xtdb.namespace, xtdb.timeout_ms)


def forget(
    config: Config,
    store: Store,
    plans: Sequence[Forgetting],
    advance: Callable[[str], None] = lambda _session: None,
) -> None:
    """Erase what the plans of one call of `plan_forgetting` name, and leave tombstones; `advance`
    is told each session before it goes.

    Raises `Conflict` where somebody has taken up some of it since the plan, and `StoreUnavailable`,
    also where commits wait for XTDB: what comes there after the erasure would stay.
    """
    figures = getattr(store, "figures", None)
    if figures is not None and figures.entries:
        raise StoreUnavailable(
            f"commits are still to go to XTDB ({figures.entries}): start it (`foredeck xtdb up`), "
            "let Pi run for a moment, and try again"
        )
    # The tombstones are written first, so that an interrupted erasure is known for what it is; a
    # session's own object goes last: as long as it is there the same can be done again.
    store.commit(Batch(puts=[_tombstone(plan).seal() for plan in plans]))
    for plan in plans:
        advance(plan.session)
        ids = sorted(plan.documents, key=lambda id: id.startswith("session:"))
        erase(config, ids, plan.blobs, plan.looked)
        drop_derived(config.home, plan.session)


def _tombstone(plan: Forgetting) -> ForgottenDocument:
    return ForgottenDocument(
        id=forgotten_id(plan.session),
        session=plan.session,
        documents=len(plan.documents),
        blobs=len(plan.blobs),
    )


def erase(config: Config, ids: Sequence[str], blobs: Sequence[str], looked: Looked) -> None:
    """Take documents and blobs out of the configured store for good; of XTDB out of the local
    copy and out of the database. Raises `Conflict` as `SqliteStore.erase`, `StoreUnavailable`."""
    with closing(
        open_sqlite(store_file(config), busy_timeout_ms=config.sqlite.busy_timeout_ms)
    ) as store:
        if config.store == "xtdb":
            store.check_unused(looked, ids, blobs)
            with closing(open_database(config)) as database:
                database.erase(ids, blobs)
        store.erase(ids, blobs, looked)


def open_database(config: Config) -> XtdbStore:
    """The configured XTDB itself, without the local copy: a server that somebody else runs where
    one is named, else foredeck's own node, started if need be."""
    from foredeck.xtdb.database.adapter import open_xtdb
    from foredeck.xtdb.node.supervise import open_own_node

    xtdb = config.xtdb
    if xtdb.url is None:
        return open_own_node(
            config.home,
            topology=xtdb.topology,
            namespace=xtdb.namespace,
            timeout_ms=xtdb.timeout_ms,
        )
    return open_xtdb(
        xtdb.url,
        token=None if xtdb.token_file is None else _read_token(xtdb.token_file),
        namespace=xtdb.namespace,
        timeout_ms=xtdb.timeout_ms,
    )


def _read_token(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"xtdb.token_file: {file} cannot be read: {error}") from error


def open_filesystems(config: Config, cwd: str) -> FilesystemMap:
    """The agent's file systems: this machine's or a container's, and the configured mounts."""
    machine = default_filesystem_id(Path(config.home))
    return FilesystemMap(
        config.sources.filesystem_id or machine,
        [
            Mount(
                mount.prefix,
                None if mount.host_path is None else str(mount.host_path),
                mount.filesystem_id,
            )
            for mount in config.sources.mounts
        ],
        device_fallback=config.sources.device_fallback,
        cwd=cwd,
        host_id=machine,
        sandboxed=config.sources.sandboxed,
    )


def open_source(config: Config, store: Store, filesystems: FilesystemMap) -> DiskSource:
    """The source that sees the disk."""
    limits = Limits(config.limits.max_file_bytes, config.limits.discovered_paths)
    return DiskSource(store, filesystems, limits)
