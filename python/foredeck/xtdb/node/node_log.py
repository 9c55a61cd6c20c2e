"""Reading a node's log for a person: why the node did not start, and what to do."""

from __future__ import annotations

import os
import re
from pathlib import Path

from foredeck.regular_files import SMALL, open_to_read

_ADVICE = (
    (r"No space left on device", "The disk is full: make room, then start it again."),
    (r"RocksDBException.*[Ll]ock", "Another process uses {data}: end it, then start this one."),
    (
        r"RocksDBException.*/index/",
        "Its index is damaged: delete {data}/index, from which nothing is lost; it is rebuilt.",
    ),
    (
        r"RocksDBException",
        "Its data are damaged: `foredeck xtdb restore FILE --force` puts a backup in their place. "
        "Without one move {data} away and start it again; what this machine has written is "
        "delivered from its local copy, {home}/copies.",
    ),
    (
        r"PSQLException",
        "It needs Postgres: FOREDECK_XTDB_PGHOST, _PGPORT, _PGDATABASE, _PGUSER and _PGPASSWORD "
        "say where that is.",
    ),
)
"""What a log says, and what to do about it; the first that fits."""


def log_tail(log: Path, lines: int = 15, since: int = 0) -> str:
    """The last lines of a log after its first `since` bytes, without Java's stack
    traces."""
    try:
        with open_to_read(log) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(since, size - SMALL))
            text = file.read(SMALL).decode("utf-8", "replace")
    except OSError:
        return ""
    kept = [line for line in text.splitlines() if not line.startswith("\t")]
    return "\n".join(kept[-lines:])


def why_it_did_not_start(log: Path, since: int) -> str:
    """What a node wrote that began at the byte `since`, and what to do where that is known."""
    said = log_tail(log, since=since)
    root = log.parent
    for pattern, advice in _ADVICE:
        if re.search(pattern, said):
            return f"{said}\n{advice.format(data=root / 'data', home=root.parent)}"
    return said
