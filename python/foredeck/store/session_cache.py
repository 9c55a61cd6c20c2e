"""A cache of what was worked out from stored sessions, in files of the state folder.

Each file is of one session and one kind of finding, and holds its own hash: one that is damaged,
unreadable or from another version of foredeck counts as absent. Nothing is lost with the whole
folder. The layers that follow the store (`foredeck.derived`) are something else, and lie in another
folder.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from contextlib import suppress
from pathlib import Path

from foredeck import __version__

FOLDER = "derived"
MAX_FILES = 150
"""How many are kept, three of a session: those written last."""

MAX_BYTES = 256 * 1024 * 1024
"""A file that unpacks to more is not read."""


def read_cached(home: Path, session: str, kind: str) -> bytes | None:
    """What this version of foredeck keeps of a session, of one kind; None for nothing."""
    try:
        head, _, packed = _file(home, session, kind).read_bytes().partition(b"\n")
        if head != _head(packed):
            return None
        return zlib.decompressobj().decompress(packed, MAX_BYTES)
    except (OSError, zlib.error):
        return None


def write_cached(home: Path, session: str, kind: str, data: bytes) -> None:
    """Keep something of a session (0600), in place of what was kept before. Raises `OSError`."""
    file = _file(home, session, kind)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    packed = zlib.compress(data, 1)
    fresh = file.with_suffix(f".{kind}-{os.getpid()}")
    try:
        opened = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(opened, "wb") as out:
            out.write(_head(packed) + b"\n" + packed)
        fresh.replace(file)
    finally:
        fresh.unlink(missing_ok=True)
    _prune(file.parent, file)


def drop_cached(home: Path, session: str) -> None:
    """Remove what was kept of a session: it holds words of its texts."""
    folder = home / FOLDER
    for found in folder.glob(f"{_name(session)}.*"):
        found.unlink(missing_ok=True)


def _file(home: Path, session: str, kind: str) -> Path:
    return home / FOLDER / f"{_name(session)}.{kind}"


def _name(session: str) -> str:
    return hashlib.sha256(session.encode(errors="surrogatepass")).hexdigest()[:32]


def _head(packed: bytes) -> bytes:
    return f"foredeck {__version__} {hashlib.sha256(packed).hexdigest()}".encode()


def _prune(folder: Path, newest: Path) -> None:
    """Remove the oldest files beyond the limit, and what killed processes left half written.

    `newest`: written just now; others may have the same time stamp.
    """

    def age(file: Path) -> tuple[bool, int]:
        return file != newest, -file.stat().st_mtime_ns

    with suppress(OSError):
        files = sorted(folder.iterdir(), key=age)
        for file in files[MAX_FILES:]:
            file.unlink(missing_ok=True)
