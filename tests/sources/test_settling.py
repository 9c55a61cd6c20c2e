"""What somebody is writing at this moment is no version yet."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from work_folder import Work

from foredeck.sources.looking import (
    EMPTIED_SETTLES_S,
    NEVER_SETTLES_S,
    SETTLES_S,
    Look,
    SettlingFiles,
)
from foredeck.sources.snapshots import CHANGING

FINGERPRINTS = [(1, 1, size, 1, 1) for size in range(3)]

JUST_NOW = -60.0
"""An age: however long a test takes, it is not long ago."""


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def looked(state: int = 0, age_s: float = -3600.0) -> Look:
    """A look at a file; by default its time is one to come, as where clocks differ."""
    changed_ns = time.time_ns() - int(age_s * 1e9)
    return Look("text", mtime_ns=changed_ns, fingerprint=FINGERPRINTS[state])


def age(path: Path | str, seconds: float) -> None:
    """Make a file or folder look as if it was changed so long ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))


@pytest.mark.parametrize(("emptied", "needed_s"), [(False, SETTLES_S), (True, EMPTIED_SETTLES_S)])
def test_its_time_of_modification_tells(emptied: bool, needed_s: float) -> None:
    assert SettlingFiles().is_settled("a", looked(age_s=needed_s), emptied=emptied)
    assert not SettlingFiles().is_settled("a", looked(age_s=-60), emptied=emptied)


@pytest.mark.parametrize(("emptied", "needed_s"), [(False, SETTLES_S), (True, EMPTIED_SETTLES_S)])
def test_where_that_cannot_tell_it_is_found_so_twice(
    clock: Clock, emptied: bool, needed_s: float
) -> None:
    rest = SettlingFiles(clock)
    assert not rest.is_settled("a", looked(0), emptied=emptied)
    clock.now_s += needed_s
    assert not rest.is_settled("a", looked(1), emptied=emptied)
    clock.now_s += needed_s - 0.01
    assert not rest.is_settled("a", looked(1), emptied=emptied)
    clock.now_s += 0.02
    assert rest.is_settled("a", looked(1), emptied=emptied)


def test_what_never_rests_is_taken_as_it_is(clock: Clock) -> None:
    rest = SettlingFiles(clock)
    for turn in range(int(NEVER_SETTLES_S * 16)):
        assert not rest.is_settled("log", looked(turn % 3), emptied=False)
        clock.now_s += 1 / 16
    assert rest.is_settled("log", looked(2), emptied=False)


def test_each_change_waits_anew(clock: Clock) -> None:
    rest = SettlingFiles(clock)
    assert not rest.is_settled("a", looked(0), emptied=False)
    rest.forget("a")
    clock.now_s += NEVER_SETTLES_S
    assert not rest.is_settled("a", looked(0), emptied=False)


def test_one_that_stays_empty_is_a_version(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foredeck.sources.looking.EMPTIED_SETTLES_S", 3600.0)
    path = work.write("a", "one")
    id = work.read("a").object_id
    Path(path).write_text("")
    age(path, 60)
    assert [s.state for s in work.disk.reconcile([id], cautious=True)] == [CHANGING]
    age(path, 3600)
    (found,) = work.disk.reconcile([id], cautious=True)
    assert [d.content for d in work.commit(found)] == [""]


def test_a_file_that_is_replaced_is_not_deleted_in_between(work: Work) -> None:
    path, other = work.write("a", "one"), work.write("b", "one")
    ids = [work.read(name).object_id for name in ("a", "b")]
    Path(path).unlink()
    Path(other).write_text("two")
    age(other, 10)
    age(work.folder, JUST_NOW)
    states = [s.state for s in work.disk.reconcile(ids, cautious=True)]
    assert states == [CHANGING, CHANGING], "what has gone may have become another"
    work.write("a", "one")
    age(path, 10)
    found = work.disk.reconcile(ids, cautious=True)
    assert [d.content for d in work.commit(*found)] == ["two"]


def test_one_that_stays_away_is_deleted_and_has_moved(work: Work) -> None:
    path = work.write("old", "one")
    id = work.read("old").object_id
    moved = work.folder / "new"
    Path(path).rename(moved)
    age(work.folder, JUST_NOW)
    assert [s.state for s in work.disk.reconcile([path, str(moved)], cautious=True)] == [CHANGING]
    age(work.folder, 10)
    gone, arrived = work.commit(*work.disk.reconcile([path, str(moved)], cautious=True))
    assert (gone.id, gone.state, gone.moved_to) == (id, "deleted", arrived.id)
    assert arrived.content == "one"


def test_a_folder_that_goes_with_its_files(work: Work) -> None:
    path = Path(work.write("d/e/a", "one"))
    id = work.read("d/e/a").object_id
    path.unlink()
    path.parent.rmdir()
    path.parent.parent.rmdir()
    age(work.folder, JUST_NOW)
    assert [s.state for s in work.disk.reconcile([id], cautious=True)] == [CHANGING]
    age(work.folder, 10)
    assert [s.state for s in work.disk.reconcile([id], cautious=True)] == ["deleted"]
