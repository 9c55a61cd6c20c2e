"""Engines at work on a state folder, as far as they run on this machine.

Each locks a small file until its process ends.
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
    pid: int
    host: int
    session: str | None


class AtWork:
    """An engine's announcement, which is silent where files cannot be locked."""

    def __init__(self, home: Path) -> None:
        self.host = os.getpid()
        """The process that the engine works for, where that is another one."""
        self._folder = home / _FOLDER
        self._path: Path | None = None
        self._descriptor: int | None = None

    def on(self, session: str | None) -> None:
        """Announces the open session, or None."""
        with suppress(OSError):
            if self._descriptor is None and session is not None:
                self._open()
            if self._descriptor is not None:
                body = {"space": _space(), "pid": os.getpid(), "host": self.host}
                # In one write: whoever reads meanwhile finds the old or the new one, padded.
                text = json.dumps({**body, "session": session})
                os.pwrite(self._descriptor, text.encode().ljust(_MAX_BYTES), 0)

    def close(self) -> None:
        """Ends the announcement."""
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
    """The engines on a state folder; process numbers of other containers are 0."""
    engines = []
    with suppress(OSError):
        for path in sorted((home / _FOLDER).iterdir()):
            with suppress(OSError):
                if (engine := _read(path)) is not None:
                    engines.append(engine)
    return engines


def _read(path: Path) -> EngineAtWork | None:
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
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
