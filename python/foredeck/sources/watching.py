"""Folder events from watchdog, which is imported only when the first folder is watched."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver, ObservedWatch

EventCallback = Callable[[str, str, str], None]
"""Receives `(kind, path, destination)`: kind `created`, `modified`, `closed`, `deleted` or
`moved`; a destination only for `moved`."""

_LOGGER = "watchdog.observers.inotify_c"
_UNWATCHED_KINDS = frozenset({"opened", "closed_no_write"})
"""Reading a file causes these: taking them for changes would start an endless loop."""


class WatchUnavailable(Exception):
    """The system refuses another watch; the text says why."""


class FolderWatcher:
    """Watches single folders, not what is below them. Callbacks run in watchdog's thread.

    `on_overflow` is called when the system says that it dropped events.
    """

    def __init__(self, on_overflow: Callable[[], None]) -> None:
        self._observer: BaseObserver | None = None
        self._listener = _OverflowListener(on_overflow)

    def watch(self, folder: str, on_event: EventCallback) -> ObservedWatch:
        """Begin to watch `folder`. Raises `WatchUnavailable`, or `FileNotFoundError`."""
        try:
            return self._start().schedule(
                _Handler(on_event),  # type: ignore[arg-type]  # watchdog only calls `dispatch`
                folder,
                event_filter=_wanted_events(),
            )
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(folder) from None
        except (OSError, RuntimeError, ImportError) as error:
            raise WatchUnavailable(str(error)) from error

    def unwatch(self, watch: ObservedWatch) -> None:
        """End one watch. Fine for a watch whose folder is gone."""
        if self._observer is not None:
            try:
                self._observer.unschedule(watch)
            except KeyError:
                return

    def stop(self) -> None:
        """End all watches and wait for watchdog's threads."""
        logging.getLogger(_LOGGER).removeHandler(self._listener)
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()
            observer.join()

    def _start(self) -> BaseObserver:
        if self._observer is None:
            # Loads where files are watched.
            from watchdog.observers import Observer

            observer = Observer()
            observer.start()
            logging.getLogger(_LOGGER).addHandler(self._listener)
            self._observer = observer
        return self._observer


class _Handler:
    """What watchdog calls for each event of one folder."""

    def __init__(self, on_event: EventCallback) -> None:
        self._on_event = on_event

    def dispatch(self, event: Any) -> None:
        if event.event_type not in _UNWATCHED_KINDS:
            destination = os.fsdecode(event.dest_path) if event.event_type == "moved" else ""
            self._on_event(event.event_type, os.fsdecode(event.src_path), destination)


class _OverflowListener(logging.Handler):
    """Learns of lost events, which watchdog only logs."""

    def __init__(self, on_overflow: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._on_overflow = on_overflow

    def emit(self, record: logging.LogRecord) -> None:
        if "overflow" in record.getMessage():
            self._on_overflow()


def _wanted_events() -> list[Any]:
    """The event classes to ask the system for: with fewer events its queue overflows later."""
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
