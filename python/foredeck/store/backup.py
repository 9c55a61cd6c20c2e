"""Backs up, restores and checks a store's file, while writers may continue."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from foredeck.config import looser_than_private
from foredeck.errors import Corrupt, NotFound, StoreDamaged, StoreUnavailable
from foredeck.finding import Finding, note, ok, problem
from foredeck.regular_files import NotRegular, require_regular
from foredeck.store.clock import now_ms
from foredeck.store.location import LOGS, draft_beside, exclusively, free_name, holders, rename_with
from foredeck.store.sqlite.connection import check_ours, is_busy, translated
from foredeck.store.store import Store
from foredeck.store.versions import new_store_id

PATIENCE_MS = 60_000
"""Wait for a busy file; only a watching user waits."""
_PAGES = 2_000
"""Pages (8 MB) between progress reports."""
_CHECKED = 1_000_000
"""SQLite steps between signs of life."""


Report = Callable[[int, str], object]


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What was backed up or restored.

    `verified`: SHA-256 over what was read from both; None if only the file was checked. `kept`:
    where the previous store is. `hints`: what the user should do next.
    """

    file: Path
    counts: Mapping[str, int]
    bytes: int
    newest_ms: int | None
    verified: str | None = None
    kept: Path | None = None
    hints: tuple[str, ...] = ()


def back_up(source: Path, target: Path, report: Report) -> BackupReport:
    """Copies the store at `source` into `target` (0600).

    Raises `StoreUnavailable` for an unreadable store or unfit target, `Corrupt` for a damaged
    store, with nothing written.
    """
    with _reading(source) as store:
        _check_target(target)
        with draft_beside(target) as draft:
            _copy(store, draft, target, report)
            _check_sound(draft, source, report)
    return contents_of(target)


def restore(source: Path, target: Path, *, force: bool, report: Report) -> Path | None:
    """Replaces the unused store at `target` by a checked backup.

    `force` keeps an existing store under another name, which is returned. Raises
    `StoreUnavailable`, and `Corrupt` for a damaged backup.
    """
    try:
        with _reading(source) as backup:
            _check_replaceable(source, target, force=force)
            with draft_beside(target) as draft:
                _copy(backup, draft, target, report)
                _check_sound(draft, source, report)
                _rename_store(draft)
                with exclusively(target):
                    return _kept(target)
    except StoreDamaged as error:
        raise Corrupt(
            f"{source} is damaged, or no backup of foredeck: nothing was changed"
        ) from error


def contents_of(path: Path) -> BackupReport:
    """Contents of a store or backup. Raises `StoreUnavailable`."""
    with _reading(path) as db:
        *counts_row, newest = db.execute(
            "SELECT (SELECT count(*) FROM document WHERE type = 'session'),"
            " (SELECT count(*) FROM version), (SELECT count(*) FROM document),"
            " count(*), max(time_ms) FROM tx"
        ).fetchone()
        size = path.stat().st_size
    counts = dict(zip(("session", "version", "object", "transaction"), counts_row, strict=True))
    return BackupReport(path, counts, size, newest)


@contextmanager
def opened_backup(path: Path) -> Iterator[Store]:
    """A backup as a read-only store, without side files."""
    with _reading(path) as db:
        yield Store(db, path, PATIENCE_MS, now_ms)


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise StoreUnavailable(f"{path}: no such file")
    with translated(path, PATIENCE_MS):
        uri = f"{path.absolute().as_uri()}?mode=ro"
        db = sqlite3.connect(uri, uri=True, timeout=PATIENCE_MS / 1000, isolation_level=None)
    with closing(db), translated(path, PATIENCE_MS):
        try:
            empty = check_ours(db) == 0
        except StoreUnavailable as error:
            raise StoreUnavailable(f"{path}: {error}") from error
        if empty:
            raise StoreUnavailable(f"{path} is empty: not a foredeck store")
        _check_plain(db, path)
        yield db


def _check_plain(db: sqlite3.Connection, path: Path) -> None:
    kinds = (
        "SELECT name FROM sqlite_schema"
        " WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%'"
    )
    if (foreign := db.execute(kinds).fetchone()) is not None:
        raise Corrupt(f"{path} holds {foreign[0]!r}, which no store has: nothing was done")


def _check_target(target: Path) -> None:
    if not target.parent.is_dir():
        raise NotFound(f"{target.parent}: no such folder")
    if not os.path.lexists(target):
        return
    try:
        require_regular(target, follow=False)
        with _reading(target) as db:
            (mode,) = db.execute("PRAGMA journal_mode").fetchone()
    except (NotRegular, StoreUnavailable) as error:
        raise StoreUnavailable(
            f"{target} exists, and is not a backup of foredeck: choose another name"
        ) from error
    if mode == "wal":
        raise StoreUnavailable(f"{target} is a store in use, not a backup: choose another name")


def _check_replaceable(source: Path, target: Path, *, force: bool) -> None:
    if target.exists() and source.samefile(target):
        raise StoreUnavailable(f"{source} is the store itself: there is nothing to restore")
    if target.exists() and not force:
        raise StoreUnavailable(f"{target} holds a store already: --force renames it first")


def _copy(source: sqlite3.Connection, draft: Path, target: Path, report: Report) -> None:
    done = 0

    def step(_status: int, remaining: int, total: int) -> None:
        nonlocal done
        report(total - remaining - done, f"of {total} pages")
        done = total - remaining

    with translated(target, PATIENCE_MS), closing(_draft(draft)) as copy:
        # An open read transaction holds one state of the store. Without it SQLite begins the copy
        # again after each commit of anybody, and would never end beside a busy writer.
        source.execute("BEGIN")
        try:
            source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            source.backup(copy, pages=_PAGES, progress=step)
        finally:
            source.execute("ROLLBACK")
    with draft.open("r+b") as file:
        # As `PRAGMA journal_mode = DELETE`, for which SQLite would need its lock: 1 in both bytes
        # says that the file has no log beside it.
        file.seek(18)
        file.write(b"\1\1")


def _check_sound(draft: Path, source: Path, report: Report) -> None:
    with closing(_draft(draft)) as copy:

        def alive() -> None:
            report(0, "checking")

        copy.set_progress_handler(alive, _CHECKED)
        try:
            (answer,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            answer = str(error)
    if answer != "ok":
        finding = answer.splitlines()[-1]
        raise Corrupt(f"{source} is damaged ({finding}): nothing was written")


def _draft(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?nolock=1"
    return sqlite3.connect(uri, uri=True, isolation_level=None)


def _rename_store(draft: Path) -> None:
    """Gives the restored store its own tokens, since the old one has used the next ones."""
    with closing(_draft(draft)) as db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'store_id'", (new_store_id(),))


def _kept(target: Path) -> Path | None:
    """Gives the store at `target` a second name, so that one always exists."""
    if not target.exists():
        return None
    aside = free_name(target, "replaced")
    _check_unused(target)
    rename_with(target, aside, LOGS)
    try:
        aside.hardlink_to(target)
    except OSError:  # a file system without hard links
        shutil.copy2(target, aside)
    return aside


def _check_unused(path: Path) -> None:
    """Raises `StoreUnavailable` if another process has the store open."""
    try:
        with translated(path, 0), closing(sqlite3.connect(path, timeout=0)) as db:
            db.execute("PRAGMA journal_mode = DELETE")
    except StoreDamaged:
        if pids := holders(path):
            raise _in_use(path, pids) from None
    except StoreUnavailable as error:
        if isinstance(error.__cause__, sqlite3.OperationalError) and is_busy(error.__cause__):
            raise _in_use(path, holders(path)) from None
        raise


def _in_use(path: Path, pids: list[int]) -> StoreUnavailable:
    by = ", ".join(f"process {pid}" for pid in pids) or "another process"
    return StoreUnavailable(f"{path} is in use by {by}: close all sessions, then restore")


# Whether a file is sound, for `foredeck doctor`

ELSEWHERE = "Set FOREDECK_HOME to a folder of its own, or move that file away."
_START_FRESH = (
    "`foredeck restore FILE --force` puts a backup in its place and keeps it; or move it away with "
    "its -wal and -shm files to start afresh; keep them for a report."
)


def check_file(file: Path) -> Finding:
    if not file.exists():
        return ok("store", f"{file} (made at first use)")
    if not file.is_file():
        return problem("store", f"{file} is not a file", ELSEWHERE)
    try:
        uri = f"{file.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as db:
            answer: str = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            schema = check_ours(db)
    except StoreUnavailable as error:
        return problem("store", f"{file}: {error}", ELSEWHERE)
    except sqlite3.OperationalError as error:
        return problem("store", f"{file} cannot be opened: {error}", f"Check who may read {file}.")
    except sqlite3.DatabaseError as error:
        return problem("store", f"{file} is damaged: {error}", _START_FRESH)
    if answer != "ok":
        return problem("store", f"{file} is damaged: {answer}", _START_FRESH)
    if not schema:
        return problem("store", f"{file} is empty: what was in it is gone", _START_FRESH)
    if looser_than_private(file) and looser_than_private(file.parent):
        return note("store", f"other users can read {file}", f"Run: chmod 600 {file}")
    size = file.stat().st_size / (1024 * 1024)
    return ok("store", f"{file}, {size:,.1f} MiB, no damage found")
