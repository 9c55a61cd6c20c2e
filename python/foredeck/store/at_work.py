"""The engines at work on a state folder: which session each has open, and for which host.

Each holds a lock on a small file of its own, which ends with its process however that ends. They
are of this machine: which sessions other machines have open on a shared database is not known.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from foredeck.regular_files import open_regular
from foredeck.store.location import is_held, make_held

_FOLDER = "at-work"
_MAX_BYTES = 4096


class EngineAtWork(NamedTuple):
    """An engine, the process of its host, and the session that it has open, if any."""

    pid: int
    host: int
    session: str | None


class AtWork:
    """What an engine says of itself. Says nothing where the folder cannot be written, or where
    files cannot be locked (Windows)."""

    def __init__(self, home: Path) -> None:
        self.host = os.getpid()
        """The process that the engine works for, where that is another one."""
        self._folder = home / _FOLDER
        self._path: Path | None = None
        self._descriptor: int | None = None

    def on(self, session: str | None) -> None:
        """The session that is open from now on; None: none is."""
        with suppress(OSError):
            if self._descriptor is None and session is not None:
                self._open()
            if self._descriptor is not None:
                body = {"space": _space(), "pid": os.getpid(), "host": self.host}
                # In one write: whoever reads meanwhile finds the old or the new one, padded.
                text = json.dumps({**body, "session": session})
                os.pwrite(self._descriptor, text.encode().ljust(_MAX_BYTES), 0)

    def close(self) -> None:
        """The engine ends."""
        if self._descriptor is not None and self._path is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> None:
        if sys.platform == "win32":
            return
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._descriptor, self._path = make_held(self._folder, f"{os.getpid()}-")


def engines_at_work(home: Path) -> list[EngineAtWork]:
    """The engines that work on a state folder now, as far as this process can see them: processes
    of another container have numbers that mean nothing here, and are given as 0."""
    found = []
    with suppress(OSError):
        for path in sorted((home / _FOLDER).iterdir()):
            with suppress(OSError):
                if (engine := _read(path)) is not None:
                    found.append(engine)
    return found


def _read(path: Path) -> EngineAtWork | None:
    """The engine whose file this is; a file whose lock is free is removed."""
    if sys.platform == "win32":
        return None
    descriptor = open_regular(path, os.O_RDWR, follow=False)
    try:
        if not is_held(descriptor):
            path.unlink(missing_ok=True)
            return None
        text = os.pread(descriptor, _MAX_BYTES, 0)
    finally:
        os.close(descriptor)
    try:
        stored = json.loads(text)
        here = stored["space"] == _space()
        pid, host = (int(stored[name]) if here else 0 for name in ("pid", "host"))
        return EngineAtWork(pid, host, stored["session"])
    except (ValueError, LookupError, TypeError):
        return EngineAtWork(0, 0, None)  # which is about to say so


def _space() -> str:
    """Identifies the place in which process numbers are those that this process sees."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
