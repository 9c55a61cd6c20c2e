"""Backup of a store in XTDB as one SQLite file, which either kind of store can restore."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from foredeck.config import Config
from foredeck.errors import StoreUnavailable
from foredeck.model.figures import counted
from foredeck.store import backup as sqlite_backup
from foredeck.store.copying import NotEmpty, copy, verified
from foredeck.store.kind import BackupReport, Report
from foredeck.store.store import open_sqlite
from foredeck_xtdb.link import SHARED, copy_file
from foredeck_xtdb.maintenance import XtdbPlace, follow_anew, settled_node, waiting
from foredeck_xtdb.node import own_node_folder
from foredeck_xtdb.runtime import how_to_start


def back_up(config: Config, target: Path, report: Report, *, verify: bool) -> BackupReport:
    """Delivers what waits, then writes the configured store into `target`.

    Raises `StoreUnavailable`; an earlier backup stays then.
    """
    folder, is_own = own_node_folder(config.home), _keeps_its_data_here(config)
    if is_own and not folder.data.is_dir() and not waiting(config):
        raise StoreUnavailable(
            f"there is nothing to back up: no node has run here; {how_to_start(config.home)}"
        )
    with (
        _draft_folder(config) as draft,
        closing(XtdbPlace.at(config, "").open(create=False)) as database,
    ):
        with closing(open_sqlite(draft / "store.db")) as store:
            copy(database, store, lambda: report(1, "copying"))
        made = sqlite_backup.back_up(draft / "store.db", target, report)
        if verify:
            with sqlite_backup.opened_backup(target) as backup:
                digest = verified(database, backup, target, lambda: report(1, "verifying"))
            made = replace(made, verified=digest)
    if left := waiting(config):
        hint = (
            f"{counted(left, 'transaction')} of this machine still waits for XTDB and is not in "
            "it: `foredeck xtdb sync` delivers, then back up again."
        )
        made = replace(made, hints=(hint,))
    return made


def restore(config: Config, source: Path, report: Report, *, force: bool) -> BackupReport:
    """Brings a backup into the configured store, which must be empty unless `force` moves its data
    aside.

    Raises `StoreUnavailable`, and `Corrupt` for a damaged backup.
    """
    with _draft_folder(config) as draft:
        sqlite_backup.restore(source, draft / "store.db", force=False, report=report)
        kept = _set_aside(config) if force else None
        with (
            closing(open_sqlite(draft / "store.db")) as backup,
            closing(XtdbPlace.at(config, "").open_now()) as database,
        ):
            try:
                copy(backup, database, lambda: report(1, "copying"))
            except NotEmpty as error:
                way = "--force moves it aside" if _keeps_its_data_here(config) else _OTHER_PLACE
                raise StoreUnavailable(f"XTDB holds a store already: {way} ({error})") from error
            finally:
                # A node's data hold all namespaces.
                aside = (config.home / "copies").glob("own-*.db") if kept else ()
                follow_anew([copy_file(config), *aside])
    where = own_node_folder(config.home).data if _keeps_its_data_here(config) else source
    return replace(sqlite_backup.contents_of(source), file=where, kept=kept)


_OTHER_PLACE = "name another xtdb.namespace"


@contextmanager
def _draft_folder(config: Config) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="backup-", dir=config.home) as name:
        yield Path(name)


def _keeps_its_data_here(config: Config) -> bool:
    if config.xtdb.url is not None:
        return False
    node = settled_node(config)
    topology = config.xtdb.topology if node is None else node.topology
    return topology not in SHARED and topology != "memory"


def _set_aside(config: Config) -> Path | None:
    if not _keeps_its_data_here(config):
        raise StoreUnavailable(
            f"--force is for data in this state folder; for others {_OTHER_PLACE}"
        )
    with own_node_folder(config.home).kept_stopped() as is_stopped:
        if not is_stopped:
            raise StoreUnavailable("a node runs here: `foredeck xtdb down`, then restore")
        return own_node_folder(config.home).set_aside()
