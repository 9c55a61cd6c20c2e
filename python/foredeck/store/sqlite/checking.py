"""Whether a file is a sound store that this user can use: a part of `foredeck doctor`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from foredeck.config import looser_than_private
from foredeck.errors import StoreUnavailable
from foredeck.finding import Finding, note, ok, problem
from foredeck.store.sqlite.schema import check_ours

ELSEWHERE = "Set FOREDECK_HOME to a folder of its own, or move that file away."
_START_FRESH = (
    "`foredeck restore FILE --force` puts a backup in its place and keeps it; or move it away with "
    "its -wal and -shm files to start afresh; keep them for a report."
)


def check_file(file: Path) -> Finding:
    """What is to be said of the store in `file`, which is only read."""
    if not file.exists():
        return ok("store", f"{file} (made at first use)")
    if not file.is_file():
        return problem("store", f"{file} is not a file", ELSEWHERE)
    try:
        answer, schema = _quick_check(file)
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


def _quick_check(file: Path) -> tuple[str, int]:
    """What SQLite says of the file, and the number of its schema."""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        answer: str = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        return answer, check_ours(connection)
