"""Trackers notice that known files may have changed.

They decide nothing: the listener looks (`FileSource.reconcile`).
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from foredeck.sources.looking import Fingerprint, fingerprint_at

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver, ObservedWatch

EventCallback = Callable[[str, str, str], None]
"""Receives `(kind, path, destination)`: `created`, `modified`, `closed`, `deleted`, or `moved` with
a destination."""

_LOGGER = "watchdog.observers.inotify_c"
# Reading a file causes these: taking them for changes would start an endless loop.
_UNWATCHED_KINDS = frozenset({"opened", "closed_no_write"})


class _Handler:
    """Receives watchdog's events of one folder."""

    def __init__(self, on_event: EventCallback) -> None:
        self._on_event = on_event

    def dispatch(self, event: Any) -> None:
        if event.event_type not in _UNWATCHED_KINDS:
            destination = os.fsdecode(event.dest_path) if event.event_type == "moved" else ""
            self._on_event(event.event_type, os.fsdecode(event.src_path), destination)


def _wanted_events() -> list[Any]:
    # With fewer events the queue of the system overflows later.
    # Loads where files are watched.
    from watchdog import events

    return [
        events.FileCreatedEvent,
        events.FileModifiedEvent,
        events.FileClosedEvent,
        events.FileDeletedEvent,
        events.FileMovedEvent,
        events.DirDeletedEvent,
        events.DirMovedEvent,
    ]


logger = logging.getLogger(__name__)


class TrackerOptions(NamedTuple):
    """A tracker's bounds, in seconds.

    `check_s`: between looks at unwatchable folders; `audit_s`: between comparisons of all time
    stamps; `burst`: events that count as one.
    """

    debounce_s: float = 0.05
    check_s: float = 3.0
    audit_s: float = 30.0
    max_folders: int = 256
    burst: int = 2000
    arrivals: int = 64


@dataclass(slots=True)
class _File:
    """A tracked path; `stamp` at the last check, None for absent."""

    path: str
    stamp: Fingerprint | None = None


@dataclass(slots=True)
class _Folder:
    """A folder with tracked files by name; `place` identifies it when watched."""

    path: str
    files: dict[str, _File] = field(default_factory=dict)
    mode: Literal["new", "watched", "polled", "gone"] = "new"
    watch: ObservedWatch | None = None
    place: tuple[int, int] | None = None
    lost: bool = False
    """Deleted: its watch is dead, even if a new folder has its name and inode."""


class FileTracker:
    """Reports when tracked files may have changed.

    `on_overflow()`: anything may have. Called on the tracker's thread, never after `stop`.
    """

    def __init__(
        self,
        on_dirty: Callable[[set[str]], None],
        on_overflow: Callable[[], None],
        on_notice: Callable[[str], None] | None = None,
        options: TrackerOptions | None = None,
    ) -> None:
        self._on_dirty = on_dirty
        self._on_overflow = on_overflow
        self._on_notice = on_notice
        self._options = options or TrackerOptions()
        self._changed = threading.Condition()
        self._folders: dict[str, _Folder] = {}
        self._paths: dict[str, str] = {}
        self._dirty: set[str] = set()
        self._reporting: set[str] = set()
        """Paths whose stamps are new already, while the listener does not know yet."""
        self._arrivals: deque[str] = deque(maxlen=self._options.arrivals)
        self._events = 0
        self._flooded = False
        self._unattached: set[str] = set()
        self._stopped = False
        self._noticed = False
        self._observer: BaseObserver | None = None
        self._thread: threading.Thread | None = None

    def track(self, object_id: str, path: str) -> None:
        """Tracks an object's local file to the end. Cheap to repeat."""
        with self._changed:
            if self._stopped or object_id in self._paths:
                return
            folder_path, name = os.path.split(path)
            folder = self._folders.setdefault(folder_path, _Folder(folder_path))
            folder.files.setdefault(name, _File(path))
            self._paths[object_id] = path
            self._unattached.add(folder_path)
            self._dirty.add(path)
            self._start()
            self._changed.notify()

    def differing(self, object_ids: Iterable[str]) -> list[str]:
        """Paths of these objects that may differ from the last report, by time stamps now."""
        with self._changed:
            paths = [self._paths[id] for id in object_ids if id in self._paths]
            stamps = {path: file.stamp for path in paths if (file := self._file(path))}
            stamps.update(dict.fromkeys(self._reporting & stamps.keys()))
        return [path for path, old in stamps.items() if old is None or fingerprint_at(path) != old]

    def remind(self, targets: Iterable[str]) -> None:
        """Reports these again shortly."""
        with self._changed:
            if self._stopped:
                return
            self._dirty.update(targets)
            self._start()
            self._changed.notify()

    def stop(self) -> None:
        """Ends all tracking; waits for the threads. Idempotent."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self._end_watches()

    # What watchdog's thread calls: short, and nothing that blocks.

    def _event(self, folder: _Folder, kind: str, path: str, destination: str) -> None:
        self._events += 1
        # In a burst the system drops events; then everything is checked.
        if self._events >= self._options.burst and not self._flooded:
            self._overflow()
        folder_path, name = os.path.split(path)
        is_tracked = name in folder.files and folder_path == folder.path
        if kind == "moved":
            is_tracked = is_tracked or self._file(destination) is not None
        elif kind == "deleted" and path == folder.path:
            folder.lost = True
            self._wake(folders=[folder.path])
        if is_tracked:
            self._wake({path, destination} - {""})
        elif kind in ("created", "moved"):
            self._arrivals.append(destination or path)

    def _wake(self, dirty: Iterable[str] = (), folders: Iterable[str] = ()) -> None:
        with self._changed:
            self._dirty.update(dirty)
            self._unattached.update(folders)
            self._changed.notify()

    def _overflow(self) -> None:
        with self._changed:
            self._flooded = True
            self._changed.notify()

    # The tracker's own thread.

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="foredeck-tracker", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        # Events can be lost, so time stamps are compared too: every few seconds in folders that the
        # system will not watch, every half minute everywhere else.
        options = self._options
        next_check = time.monotonic() + options.check_s
        next_audit = time.monotonic() + options.audit_s
        while self._wait(next_check - time.monotonic()):
            now = time.monotonic()
            if now >= next_check:
                self._events = 0
                self._check(everything=now >= next_audit)
                next_audit = now + options.audit_s if now >= next_audit else next_audit
                next_check = now + options.check_s
            self._attach_folders()
            self._report()

    def _wait(self, timeout_s: float) -> bool:
        """Waits for work, then for more to arrive; False at the end."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopped or self._dirty or self._flooded or self._unattached,
                max(0.0, timeout_s),
            )
            if not self._stopped:
                # One save makes several events; together they are one look.
                self._changed.wait_for(lambda: self._stopped, self._options.debounce_s)
            return not self._stopped

    def _check(self, everything: bool) -> None:
        with self._changed:
            folders = list(self._folders.values())
        for folder in folders:
            place = _place(folder.path)
            if place != folder.place and folder.mode != "new":
                self._wake(folders=[folder.path])
            if folder.mode == "polled" or everything:
                with self._changed:
                    files = list(folder.files.values())
                self._wake([f.path for f in files if fingerprint_at(f.path) != f.stamp])

    def _attach_folders(self) -> None:
        with self._changed:
            folders, self._unattached = self._unattached, set()
        for path in sorted(folders):
            with self._changed:
                folder = self._folders.get(path)
            if folder is None:
                continue
            place = _place(path)
            if folder.lost or place != folder.place:
                self._release(folder)
            if folder.mode in ("new", "gone"):
                self._attach(folder, place)

    def _attach(self, folder: _Folder, place: tuple[int, int] | None) -> None:
        folder.mode, folder.place = "gone", place
        if place is not None:
            folder.mode = self._watch(folder)
        with self._changed:
            self._dirty.update(file.path for file in folder.files.values())

    def _watch(self, folder: _Folder) -> Literal["watched", "polled", "gone"]:
        watched = sum(f.mode == "watched" for f in list(self._folders.values()))
        try:
            if watched >= self._options.max_folders:
                raise OSError(f"{watched} folders are watched already")
            # The system would refuse to watch it, which is nothing that the user can mend.
            if not os.access(folder.path, os.R_OK):
                return "polled"
            folder.watch = self._running_observer().schedule(
                _Handler(partial(self._event, folder)),  # type: ignore[arg-type]  # only `dispatch`
                folder.path,
                event_filter=_wanted_events(),
            )
        except (FileNotFoundError, NotADirectoryError):
            return "gone"
        except (OSError, RuntimeError, ImportError) as error:
            self._notice(
                f"not all folders can be watched for changes ({error}); "
                f"their files are compared every {self._options.check_s:g} s instead"
            )
            return "polled"
        return "watched"

    def _release(self, folder: _Folder) -> None:
        watch, folder.watch, folder.lost = folder.watch, None, False
        if folder.mode != "new":
            folder.mode = "gone"
        if watch is not None and self._observer is not None:
            with suppress(KeyError):
                self._observer.unschedule(watch)

    def _running_observer(self) -> BaseObserver:
        if self._observer is None:
            # Loads where files are watched.
            from watchdog.observers import Observer

            observer = Observer()
            observer.start()
            logging.getLogger(_LOGGER).addFilter(self._heed)
            self._observer = observer
        return self._observer

    def _end_watches(self) -> None:
        """Waits for watchdog's threads."""
        logging.getLogger(_LOGGER).removeFilter(self._heed)
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()
            observer.join()

    def _heed(self, record: logging.LogRecord) -> bool:
        """A log filter that lets everything pass: only the log reports lost events."""
        if record.levelno >= logging.WARNING and "overflow" in record.getMessage():
            self._overflow()
        return True

    def _report(self) -> None:
        with self._changed:
            dirty, self._dirty = self._dirty, set()
            flooded, self._flooded = self._flooded, False
            self._events = 0 if flooded else self._events
            files = self._files() if flooded else [f for p in dirty if (f := self._file(p))]
            self._reporting = {file.path for file in files}
        # Stamped before the listener looks: what changes in between differs from the stamp and is
        # reported again, so nothing is lost.
        gone = [file for file in files if not self._restamp(file)]
        # A file that is gone may have been renamed to one that has come.
        if gone and self._arrivals:
            arrivals = list(self._arrivals)
            self._arrivals.clear()
            dirty.update(arrivals)
        if dirty:
            self._call(lambda: self._on_dirty(dirty))
        if flooded:
            self._call(self._on_overflow)
        with self._changed:
            self._reporting = set()

    def _restamp(self, file: _File) -> bool:
        """Updates a file's stamp; returns whether it exists."""
        stamp = fingerprint_at(file.path)
        with self._changed:
            file.stamp = stamp
        return stamp is not None

    def _notice(self, text: str) -> None:
        if not self._noticed and self._on_notice is not None:
            self._noticed = True
            notice = self._on_notice
            self._call(lambda: notice(text))

    def _call(self, callback: Callable[[], None]) -> None:
        if self._stopped:
            return
        try:
            callback()
        except Exception:
            logger.exception("a tracker's listener failed")

    # With the lock held.

    def _file(self, path: str) -> _File | None:
        folder_path, name = os.path.split(path)
        folder = self._folders.get(folder_path)
        return folder.files.get(name) if folder else None

    def _files(self) -> list[_File]:
        return [file for folder in self._folders.values() for file in folder.files.values()]


def _place(folder: str) -> tuple[int, int] | None:
    stamp = fingerprint_at(folder)
    return None if stamp is None else stamp[:2]
