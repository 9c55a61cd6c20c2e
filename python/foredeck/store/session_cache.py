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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from foredeck import __version__
from foredeck.regular_files import read_regular

if TYPE_CHECKING:  # an engine never erases
    from foredeck.store.erasing import Erasure
    from foredeck.store.protocol import LocalStore

FOLDER = "derived"
MAX_FILES = 150
"""How many are kept, three of a session: those written last."""

MAX_BYTES = 256 * 1024 * 1024
"""A file that unpacks to more is not read."""


class CachedStream(NamedTuple):
    """One of the streams of a file, deflated by itself: whoever may not need it leaves it so."""

    packed: bytes

    def unpack(self) -> bytes:
        """What was kept."""
        return zlib.decompress(self.packed)


def read_cached(home: Path, session: str, kind: str) -> bytes | None:
    """The first stream of what this version of foredeck keeps of a session, of one kind; None for
    nothing."""
    streams = read_cached_streams(home, session, kind)
    return streams[0].unpack() if streams else None


def read_cached_streams(home: Path, session: str, kind: str) -> list[CachedStream]:
    """All of its streams, still packed; none where nothing is kept."""
    try:
        head, _, packed = read_regular(_file(home, session, kind), 2 * MAX_BYTES).partition(b"\n")
        listed = (pair.partition(b":") for pair in head.split(b" ")[3:])
        sizes = [(int(size), int(full)) for size, _, full in listed]
    except (OSError, ValueError):
        return []
    if head != _head(sizes, packed) or sum(full for _, full in sizes) > MAX_BYTES:
        return []
    ends = [*accumulate(size for size, _ in sizes)]
    return [
        CachedStream(packed[end - size : end]) for end, (size, _) in zip(ends, sizes, strict=True)
    ]


def write_cached(home: Path, session: str, kind: str, *streams: bytes) -> None:
    """Keep something of a session (0600), in place of what was kept before. Nothing fails where it
    cannot be written, as on a full disk: it is worked out again."""
    deflated = [zlib.compress(stream, 1) for stream in streams]
    sizes = [(len(small), len(full)) for small, full in zip(deflated, streams, strict=True)]
    packed = b"".join(deflated)
    file = _file(home, session, kind)
    fresh = file.with_suffix(f".{kind}-{os.getpid()}")
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            opened = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(opened, "wb") as out:
                out.write(_head(sizes, packed) + b"\n" + packed)
            fresh.replace(file)
        finally:
            fresh.unlink(missing_ok=True)
        _prune(file.parent, file)


@contextmanager
def erasing(home: Path, _store: LocalStore, erasure: Erasure) -> Iterator[None]:
    """Remove what was kept of the sessions of an erasure: it holds words of their texts."""
    try:
        # Where the process is killed in the block, a session that is gone cannot be erased again.
        _drop_all(home, erasure)
        yield
    finally:
        # Another process may have written it meanwhile.
        _drop_all(home, erasure)


def _drop_all(home: Path, erasure: Erasure) -> None:
    for session in erasure.sessions:
        drop_cached(home, session)


def drop_cached(home: Path, session: str) -> None:
    """Remove what was kept of a session."""
    for found in (home / FOLDER).glob(f"{_name(session)}.*"):
        found.unlink(missing_ok=True)


def _file(home: Path, session: str, kind: str) -> Path:
    return home / FOLDER / f"{_name(session)}.{kind}"


def _name(session: str) -> str:
    return hashlib.sha256(session.encode(errors="surrogatepass")).hexdigest()[:32]


def _head(sizes: Sequence[tuple[int, int]], packed: bytes) -> bytes:
    """The first line of a file: who wrote it, its hash, and of each stream the bytes that it takes
    and those that it unpacks to."""
    listed = " ".join(f"{size}:{full}" for size, full in sizes)
    hashed = hashlib.sha256(f"{listed}\n".encode() + packed).hexdigest()
    return f"foredeck {__version__} {hashed} {listed}".encode()


def _prune(folder: Path, newest: Path) -> None:
    """Remove the oldest files beyond the limit, and what killed processes left half written.

    `newest`: written just now.
    """

    def age(file: Path) -> tuple[bool, int]:
        # Others may have the time stamp of the newest.
        return file != newest, -file.stat().st_mtime_ns

    for file in sorted(folder.iterdir(), key=age)[MAX_FILES:]:
        file.unlink(missing_ok=True)
