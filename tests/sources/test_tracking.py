"""Trackers on real files, with real watchers."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from work_folder import Work

from foredeck.sources.tracking import FileTracker, TrackerOptions
from processes import run_program

PATIENCE_S = 240.0
"""How long a test waits for something that must come; not how long it takes."""

FAST = TrackerOptions(debounce_s=0.02, check_s=0.1, audit_s=10**6)


class Listener:
    """Collects what a tracker says."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.dirty: list[set[str]] = []
        self.overflows = 0
        self.notices: list[str] = []

    def on_dirty(self, paths: set[str]) -> None:
        with self._changed:
            self.dirty.append(paths)
            self._changed.notify_all()

    def on_overflow(self) -> None:
        with self._changed:
            self.overflows += 1
            self._changed.notify_all()

    def on_notice(self, text: str) -> None:
        with self._changed:
            self.notices.append(text)
            self._changed.notify_all()

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait for something that the tracker will say."""
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE_S), (self.dirty, self.notices)

    def heard(self, *paths: str) -> bool:
        """Whether all these paths have been told."""
        return set(paths) <= set().union(*self.dirty)

    def forget(self) -> None:
        with self._changed:
            self.dirty.clear()
            self.overflows = 0


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def trackers(listener: Listener) -> Iterator[Callable[..., FileTracker]]:
    made: list[FileTracker] = []

    def make(options: TrackerOptions = FAST) -> FileTracker:
        tracker = FileTracker(listener.on_dirty, listener.on_overflow, listener.on_notice, options)
        made.append(tracker)
        return tracker

    yield make
    for tracker in made:
        tracker.stop()


@pytest.fixture
def tracker(trackers: Callable[..., FileTracker]) -> FileTracker:
    return trackers()


def attach(tracker: FileTracker, listener: Listener, *paths: str) -> None:
    """Track files under their own paths as ids, and wait until that is so."""
    for path in paths:
        tracker.track(path, path)
    listener.wait(lambda: listener.heard(*paths))
    listener.forget()


def settle(tracker: FileTracker, ids: list[str]) -> None:
    """Wait until what these files hold has been reported."""
    end = time.monotonic() + PATIENCE_S
    while tracker.differing(ids):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_change_is_reported(tracker: FileTracker, listener: Listener, work: Work) -> None:
    path, other = work.write("a"), work.write("b")
    attach(tracker, listener, path)
    work.write("b", "not tracked")
    work.write("a", "changed")
    listener.wait(lambda: listener.heard(path))
    assert other not in set().union(*listener.dirty)


def test_reading_is_no_change(tracker: FileTracker, listener: Listener, work: Work) -> None:
    path, last = work.write("a"), work.write("z")
    attach(tracker, listener, path, last)
    for _ in range(20):
        Path(path).read_text()
    work.write("z", "now")
    listener.wait(lambda: listener.heard(last))
    assert set().union(*listener.dirty) == {last}


def test_deletion_and_return_are_reported(
    tracker: FileTracker, listener: Listener, work: Work
) -> None:
    path = work.write("a")
    attach(tracker, listener, path)
    Path(path).unlink()
    listener.wait(lambda: listener.heard(path))
    assert tracker.differing([path]) == [path]
    listener.forget()
    work.write("a", "again")
    listener.wait(lambda: listener.heard(path))
    settle(tracker, [path])


def test_a_rename_into_another_watched_folder_tells_both_ends(
    tracker: FileTracker, listener: Listener, work: Work
) -> None:
    path, other, new = work.write("one/a"), work.write("two/b"), str(work.folder / "two" / "a")
    attach(tracker, listener, path, other)
    Path(path).rename(new)
    listener.wait(lambda: listener.heard(path, new))


def test_a_folder_that_goes_and_comes_back(
    tracker: FileTracker, listener: Listener, work: Work
) -> None:
    path = work.write("d/a")
    attach(tracker, listener, path)
    for round in range(3):
        shutil.rmtree(work.folder / "d")
        listener.wait(lambda: listener.heard(path))
        listener.forget()
        work.write("d/a", f"round {round}")
        settle(tracker, [path])
        listener.wait(lambda: listener.heard(path))
        listener.forget()
        work.write("d/a", f"changed in round {round}")
        listener.wait(lambda: listener.heard(path))


def test_a_folder_that_is_replaced_at_once(
    tracker: FileTracker, listener: Listener, work: Work
) -> None:
    path = work.write("d/a")
    attach(tracker, listener, path)
    (work.folder / "d").rename(work.folder / "old")
    work.write("d/a", "in a new folder")
    listener.wait(lambda: listener.heard(path))
    listener.forget()
    work.write("d/a", "changed there")
    listener.wait(lambda: listener.heard(path))


def test_a_file_that_is_not_there_yet(tracker: FileTracker, listener: Listener, work: Work) -> None:
    path = str(work.folder / "later" / "a")
    attach(tracker, listener, path)
    assert tracker.differing([path]) == [path]
    work.write("later/a")
    listener.wait(lambda: listener.heard(path))
    settle(tracker, [path])


def test_a_listener_that_fails_does_not_end_the_tracking(work: Work, listener: Listener) -> None:
    def fail(paths: set[str]) -> None:
        listener.on_dirty(paths)
        raise RuntimeError("listener")

    tracker = FileTracker(fail, listener.on_overflow, None, FAST)
    try:
        path = work.write("a")
        attach(tracker, listener, path)
        work.write("a", "changed")
        listener.wait(lambda: listener.heard(path))
    finally:
        tracker.stop()


def test_stop_ends_all_threads(listener: Listener, work: Work) -> None:
    before = set(threading.enumerate())
    tracker = FileTracker(listener.on_dirty, listener.on_overflow)
    tracker.stop()
    tracker = FileTracker(listener.on_dirty, listener.on_overflow)
    attach(tracker, listener, *(work.write(f"d{n}/a") for n in range(5)))
    tracker.stop()
    tracker.stop()
    left = [t for t in set(threading.enumerate()) - before if "InotifyFD" not in type(t).__name__]
    assert left == []
    tracker.track("late", work.write("late"))
    assert tracker.differing(["late"]) == []


def test_folders_over_the_bound_are_compared(
    trackers: Callable[..., FileTracker], listener: Listener, work: Work
) -> None:
    options = TrackerOptions(debounce_s=0.02, check_s=0.1, audit_s=10**6, max_folders=2)
    tracker = trackers(options)
    paths = [work.write(f"d{n}/a") for n in range(5)]
    attach(tracker, listener, *paths)
    assert len(listener.notices) == 1
    for path in paths:
        Path(path).write_text("changed, and longer")
    listener.wait(lambda: listener.heard(*paths))
    listener.forget()
    for path in paths:
        Path(path).unlink()
    listener.wait(lambda: listener.heard(*paths))
    assert tracker.differing(paths) == paths
    assert len(listener.notices) == 1


def test_an_audit_finds_what_no_event_reported(
    trackers: Callable[..., FileTracker], listener: Listener, work: Work
) -> None:
    tracker = trackers(TrackerOptions(debounce_s=0.02, check_s=0.1, audit_s=0.1))
    path = work.write("a")
    attach(tracker, listener, path)
    tracker._end_watches()  # as if the system dropped every event from now on
    work.write("a", "changed, and longer")
    listener.wait(lambda: listener.heard(path))


def test_a_burst_asks_for_a_look_at_everything(
    trackers: Callable[..., FileTracker], listener: Listener, work: Work
) -> None:
    tracker = trackers(TrackerOptions(debounce_s=0.02, check_s=60, burst=300))
    path = work.write("a")
    attach(tracker, listener, path)
    for n in range(300):
        work.write(f"other-{n}")
    listener.wait(lambda: listener.overflows > 0)


WITHOUT_HANDLES = """
import os, resource, sys, threading
import watchdog.observers
from foredeck.sources.tracking import FileTracker, TrackerOptions
path, told, notices = sys.argv[1], threading.Semaphore(0), []
tracker = FileTracker(lambda paths: told.release(), lambda: None, notices.append,
                      TrackerOptions(check_s=0.1))
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
last = os.dup(0); os.close(last)
resource.setrlimit(resource.RLIMIT_NOFILE, (last, hard))
tracker.track("id", path)
assert told.acquire(timeout=60)
resource.setrlimit(resource.RLIMIT_NOFILE, (last + 50, hard))
with open(path, "a") as file:
    file.write("more")
assert told.acquire(timeout=60)
tracker.stop()
print(len(notices), "Too many open files" in notices[0] or "limit" in notices[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="inotify's own limits")
def test_a_system_without_watches_left_is_compared(work: Work) -> None:
    path = work.write("a")
    done = run_program(sys.executable, "-c", WITHOUT_HANDLES, path, timeout=120)
    assert done.stdout.split() == ["1", "True"], done.stderr


def test_what_differs_is_known_without_an_event(
    trackers: Callable[..., FileTracker], listener: Listener, work: Work
) -> None:
    slow = trackers(TrackerOptions(debounce_s=10**6))
    paths = [work.write(name) for name in ("a.txt", "b.txt")]
    quick = trackers(FAST)
    for number, path in enumerate(paths):
        slow.track(f"id-{number}", path)
        quick.track(f"id-{number}", path)
    assert slow.differing(["id-0", "id-1", "id-9"]) == paths
    listener.wait(lambda: listener.heard(*paths))
    assert quick.differing(["id-0", "id-1"]) == []
