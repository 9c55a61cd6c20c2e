"""File watching: does it work here, and how many folders may be watched."""

from __future__ import annotations

import logging
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from foredeck.finding import Finding, note, ok, problem

WATCHES_MIN = 8192
INSTANCES_MIN = 64
EVENT_SECONDS = 5.0
INOTIFY = Path("/proc/sys/fs/inotify")

_WITHOUT = "Without it, changes are found when a session resumes and when a tool touches the file."


def check_watcher() -> Iterator[Finding]:
    """The limits of the system, then one real event."""
    if sys.platform == "linux":
        yield from _limits()
    yield _event()


def _limits() -> Iterator[Finding]:
    for name, wanted in (("max_user_watches", WATCHES_MIN), ("max_user_instances", INSTANCES_MIN)):
        limit = _read_limit(name)
        if limit is not None and limit < wanted:
            setting = f"fs.inotify.{name}"
            yield note(
                "inotify",
                f"{setting} is {limit}, low for several sessions at once",
                f"Run: sudo sysctl {setting}={wanted * 8}",
            )
        elif limit is not None:
            yield ok("inotify", f"{name} {limit:,}")


def _read_limit(name: str) -> int | None:
    try:
        return int((INOTIFY / name).read_text())
    except (OSError, ValueError):
        return None


def _event() -> Finding:
    logging.getLogger("watchdog").addHandler(logging.NullHandler())
    seen = threading.Event()

    class Handler(FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:  # noqa: ARG002
            seen.set()

    observer = Observer()
    try:
        with tempfile.TemporaryDirectory(prefix="foredeck-doctor-") as folder:
            observer.schedule(Handler(), folder)
            observer.start()
            try:
                (Path(folder) / "file").write_text("changed")
                arrived = seen.wait(EVENT_SECONDS)
            finally:
                observer.stop()
                observer.join()
    except OSError as error:
        return problem("watcher", f"cannot watch a folder: {error}", _WITHOUT + _HOW_TO_DO_WITHOUT)
    if not arrived:
        return problem("watcher", "no event came for a changed file", _WITHOUT + _HOW_TO_DO_WITHOUT)
    return ok("watcher", f"changes are seen ({type(observer).__name__})")


_HOW_TO_DO_WITHOUT = " Set sources.watch = false to do without it and silence this."
