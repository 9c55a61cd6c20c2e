"""Gone is not deleted: files whose file system is away, or is another one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from work_folder import FILESYSTEM, Work

from foredeck.sources import looking
from foredeck.sources.disk import DiskSource
from foredeck.sources.filesystem import FilesystemMap, Mount
from foredeck.sources.looking import Volumes, is_orphaned
from foredeck.store.store import Store
from processes import run_program


@pytest.fixture
def mounts(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What seems to be mounted: the file system of each place, as the engine sees it."""
    points = {"/": "disk"}
    monkeypatch.setattr(looking, "_mounted", lambda: dict.fromkeys(points, "/"))
    monkeypatch.setattr(looking, "_name_of", points.__getitem__)
    return points


def restarted(work: Work) -> Work:
    """The same work by an engine that remembers no look."""
    again = Work(work.folder, work.store)
    again.filesystems = work.filesystems
    again.disk = DiskSource(work.store, work.filesystems)
    return again


def on_stick(work: Work, mounts: dict[str, str], name: str) -> tuple[Path, Path, str]:
    """A file that was read on a mounted stick: the stick's place, its path and id."""
    usb = work.folder / "usb"
    mounts[str(usb)] = "stick"
    path = Path(work.write(name, "work"))
    return usb, path, work.read(name).object_id


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("name", ["usb/a.py", "usb/deep/er/a.py"])
def test_a_file_system_that_is_away_takes_no_file_along(
    work: Work, mounts: dict[str, str], restart: bool, name: str
) -> None:
    usb, path, id = on_stick(work, mounts, name)
    shutil.move(usb, work.folder.parent / "away")
    usb.mkdir()
    work.write("copy.py", "work")  # the same bytes elsewhere
    del mounts[str(usb)]
    now = restarted(work) if restart else work
    (gone,) = now.reconcile([id])
    assert (gone.document, gone.state) == (None, "unreachable")
    assert now.disk.sight(name, "read").state == "unreachable"
    assert work.stored(id).content == "work"
    assert is_orphaned(work.stored(id).model_dump(), str(path), work.filesystems, Volumes())

    usb.rmdir()
    shutil.move(work.folder.parent / "away", usb)
    mounts[str(usb)] = "stick"
    (back,) = now.reconcile([id])
    assert (back.document, back.state) == (None, "text")
    assert not is_orphaned(work.stored(id).model_dump(), str(path), work.filesystems, Volumes())
    path.unlink()
    now.reconcile([id])
    assert work.stored(id).state == "deleted"


def test_another_file_system_at_the_same_place_says_nothing(
    work: Work, mounts: dict[str, str]
) -> None:
    usb, path, id = on_stick(work, mounts, "usb/a")
    path.unlink()
    mounts[str(usb)] = "another stick"
    (gone,) = restarted(work).reconcile([id])
    assert gone.state == "unreachable"
    # With equal bytes there it is attached, and from then on that is where it is.
    path.write_text("work")
    later = restarted(work)
    (back,) = later.reconcile([id])
    assert (back.document, back.state) == (None, "text")
    path.unlink()
    later.reconcile([id])
    assert work.stored(id).state == "deleted"


def test_a_folder_in_the_place_of_a_file_or_a_link_says_nothing_either(
    work: Work, mounts: dict[str, str]
) -> None:
    usb, path, id = on_stick(work, mounts, "usb/a")
    del mounts[str(usb)]
    path.unlink()
    path.mkdir()
    assert work.reconcile([id])[0].state == "unreachable"
    path.rmdir()
    path.symlink_to(work.folder)
    assert work.reconcile([id])[0].state == "unreachable"


@pytest.mark.parametrize("in_project", [False, True])
def test_a_mount_whose_folder_was_moved_away_is_not_here(
    work: Work, store: Store, tmp_path: Path, in_project: bool
) -> None:
    host = (work.folder if in_project else tmp_path) / "host"
    (host / "sub").mkdir(parents=True)
    (host / "sub" / "a").write_text("work")
    filesystems = FilesystemMap(
        FILESYSTEM, [Mount("/data", str(host))], cwd=str(work.folder), host_id=FILESYSTEM
    )
    work.disk = DiskSource(store, filesystems)
    id = work.read("/data/sub/a").object_id
    host.rename(host.with_name("elsewhere"))
    for disk in (work.disk, DiskSource(store, filesystems)):
        (gone,) = disk.reconcile([id])
        assert (gone.document, gone.state) == (None, "unreachable")
    host.with_name("elsewhere").rename(host)
    assert work.reconcile([id])[0].document is None
    # A folder in it that is removed is removed with its files.
    shutil.rmtree(host / "sub")
    work.reconcile([id])
    assert work.stored(id).state == "deleted"


def test_a_project_that_was_moved_away_is_not_deleted(work: Work) -> None:
    work.write("src/a", "work")
    id = work.read("src/a").object_id
    work.folder.rename(work.folder.with_name("moved"))
    assert work.reconcile([id])[0].state == "unreachable"
    assert restarted(work).reconcile([id])[0].state == "unreachable"


LICENCE = "Permission is hereby granted\n"


def with_two_licences(work: Work) -> tuple[Path, str]:
    """The first of two equal files that were read, and its id."""
    path = Path(work.write("LICENSE", LICENCE))
    old = work.read("LICENSE").object_id
    work.write("other/LICENSE", LICENCE)
    work.read("other/LICENSE")
    return path, old


def test_common_bytes_are_no_rename(work: Work) -> None:
    a, old = with_two_licences(work)
    a.unlink()
    b = work.write("notes/terms.txt", LICENCE)
    work.reconcile([str(a), b])
    gone = work.stored(old)
    assert (gone.state, gone.moved_to) == ("deleted", None)


@pytest.mark.parametrize("target", ["src/lib/LICENSE", "src/terms.txt"])
def test_common_bytes_of_the_same_name_or_inode_are(work: Work, target: str) -> None:
    a, old = with_two_licences(work)
    (work.folder / target).parent.mkdir(parents=True)
    a.rename(work.folder / target)
    work.reconcile([str(a), str(work.folder / target)])
    assert work.stored(old).moved_to == work.disk.identify(target)[0]


SCRIPT = """
import json, os, subprocess, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from work_folder import Work
from foredeck.store.store import open_sqlite

base, kind = Path(sys.argv[1]), sys.argv[3]
folder, usb, disk = base / "work", base / "work" / "usb", base / "disk"
usb.mkdir(parents=True)
(disk / "sub").mkdir(parents=True)

def mount():
    if kind == "bind":
        subprocess.run(["mount", "--bind", disk, usb], check=True)
    else:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", usb], check=True)

def fill():
    (usb / "sub").mkdir(exist_ok=True)
    for name in ("a", "sub/b"):
        (usb / name).write_text("of " + name)

def states(work):
    return [(s.state, s.document is not None) for s in work.reconcile(ids)]

mount()
fill()
store = open_sqlite(base / "store.db")
first = Work(folder, store)
ids = [first.read(f"usb/{name}").object_id for name in ("a", "sub/b")]
found = {}
subprocess.run(["umount", usb], check=True)
(folder / "copy").write_text("of a")
found["away"] = states(first)
found["away, restarted"] = states(Work(folder, store))
mount()
if kind == "tmpfs":
    found["empty"] = states(Work(folder, store))
fill()
work = Work(folder, store)
found["back"] = states(work)
(usb / "sub" / "b").unlink()
found["removed"] = states(work)
if kind == "bind":
    (usb / "a").unlink()
    found["removed, restarted"] = states(Work(folder, store))
print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs mounts of Linux")
@pytest.mark.parametrize("kind", ["tmpfs", "bind"])
def test_a_real_mount_that_comes_and_goes(tmp_path: Path, kind: str) -> None:
    alone = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    if shutil.which("unshare") is None or _fails([*alone, "mount", "-t", "tmpfs", "x", "/mnt"]):
        pytest.skip("this machine lets no process mount anything in a namespace of its own")
    here = str(Path(__file__).parent)
    done = run_program(*alone, sys.executable, "-c", SCRIPT, str(tmp_path), here, kind, timeout=60)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    away, same = [["unreachable", False]] * 2, [["text", False]] * 2
    assert (found["away"], found["away, restarted"]) == (away, away)
    assert found.get("empty", away) == away
    assert found["back"] == same
    assert found["removed"] == [["text", False], ["deleted", True]]
    assert found.get("removed, restarted", [["deleted", True], ["deleted", False]]) == [
        ["deleted", True],
        ["deleted", False],
    ]


def _fails(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode != 0
