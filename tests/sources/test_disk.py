"""The indexing protocol on real files and a real store."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from work_folder import FILESYSTEM, Work

from foredeck.sources.disk import DiskSource
from foredeck.sources.filesystem import FilesystemMap, Mount
from foredeck.sources.looking import HASHED_BYTES
from foredeck.sources.snapshots import ToolEvent
from foredeck.store.protocol import Batch
from foredeck.store.store import Store


def settle(path: str) -> None:
    """Make a file old enough for its time stamps to be trusted."""
    old = Path(path).stat().st_mtime - 3600
    os.utime(path, (old, old))


def test_unchanged_bytes_make_no_version(work: Work) -> None:
    path = work.write("a")
    first = work.read("a")
    for _ in range(3):
        again = work.read("a")
        assert (again.document, again.state) == (None, "text")
        assert again.head is not None
    settle(path)
    os.utime(path)
    assert work.read("a").document is None
    assert len(work.store.history(first.object_id)) == 1


def test_a_change_of_the_same_size_and_time_is_seen(work: Work) -> None:
    """Time stamps lie for files that were just written: those are hashed again."""
    path = work.write("a", "one")
    stamp = Path(path).stat().st_mtime_ns
    id = work.read("a").object_id
    with Path(path).open("r+") as file:
        file.write("two")
    os.utime(path, ns=(stamp, stamp))
    work.reconcile([id])
    assert work.stored(id).content == "two"


@pytest.mark.parametrize(
    ("data", "state"),
    [(b"", "text"), (b"a\0b", "binary"), (b"\xff\xfe", "binary"), (b"x" * 70_000, "huge")],
)
def test_what_a_file_is(work: Work, data: bytes, state: str) -> None:
    work.write("a.bin", data)
    snapshot = work.read("a.bin")
    document = work.stored(snapshot.object_id)
    assert snapshot.state == document.state == state
    assert document.content == ("" if state == "text" else None)
    assert document.model_extra == {"size": len(data)}
    assert document.revision == (None if state == "text" else document.source_hash)
    assert work.read("a.bin").document is None


@pytest.mark.parametrize("size", [70_000, HASHED_BYTES + 1])
def test_a_huge_file_that_is_rewritten_at_the_same_size_makes_a_version(
    work: Work, size: int
) -> None:
    work.write("log", b"x" * size)
    old = work.stored(work.read("log").object_id)
    work.write("log", b"y" * size)
    work.reconcile([old.id])
    new = work.stored(old.id)
    assert (new.state, new.content) == ("huge", None)
    assert new.content_hash != old.content_hash
    assert len(work.store.history(old.id)) == 2


def test_a_name_that_is_not_utf8_goes_through_the_store(work: Work) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    path = work.write(name, "x")
    id = work.read(name).object_id
    document = work.stored(id)
    assert document.source.path == path
    work.write(name, "y")
    work.reconcile([id])
    assert work.stored(id).content == "y"
    assert [h.id for h in work.store.query("file", {"source.path": path})] == [id]


def test_a_file_that_becomes_a_folder_is_deleted(work: Work) -> None:
    path = work.write("a")
    id = work.read("a").object_id
    Path(path).unlink()
    Path(path).mkdir()
    work.reconcile([id])
    assert work.stored(id).state == "deleted"


def test_a_folder_outside_the_project_that_is_gone_says_nothing(
    work: Work, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "a").write_text("x")
    id = work.read(str(tmp_path / "away" / "a")).object_id
    shutil.rmtree(tmp_path / "away")
    later = DiskSource(store, work.filesystems)
    (snapshot,) = later.reconcile([id])
    assert (snapshot.document, snapshot.state) == (None, "unreachable")
    assert work.stored(id).content == "x"


def test_a_file_system_that_is_not_here_says_nothing(store: Store, work: Work) -> None:
    far = FilesystemMap("far", cwd=str(work.folder))
    work.write("a")
    id, _ = DiskSource(store, far).identify("a")
    snapshot = DiskSource(store, far).sight("a", "read")
    work.commit(snapshot)
    (work.folder / "a").unlink()
    (seen,) = work.disk.reconcile([id])
    assert (seen.document, seen.state) == (None, "unreachable")


def test_a_sandboxed_file_is_known_by_what_the_tools_said(work: Work, store: Store) -> None:
    work.write("mounted", "on the host")
    filesystems = FilesystemMap(
        "box", [Mount("/w", str(work.folder))], cwd="/w", host_id=FILESYSTEM, sandboxed=True
    )
    disk = DiskSource(store, filesystems)
    event = ToolEvent("write", {"path": "/etc/hosts", "content": "box\n"}, "ok", cwd="/w")
    (inside,) = disk.after_tool(event)
    assert (inside.document.content, inside.path) == ("box\n", "/etc/hosts")
    (mounted,) = disk.after_tool(ToolEvent("read", {"path": "mounted"}, "?", cwd="/w"))
    assert mounted.document.content == "on the host"
    assert mounted.object_id == work.disk.identify("mounted")[0]


def test_a_file_that_becomes_a_link_ends_its_own_history(work: Work) -> None:
    path = work.write("a", "same bytes")
    old = work.read("a").object_id
    Path(path).rename(work.folder / "b")
    Path(path).symlink_to("b")
    work.reconcile([path])
    new = work.disk.identify("a")[0]
    assert new == work.disk.identify("b")[0] != old
    assert (work.stored(old).state, work.stored(old).moved_to) == ("deleted", new)
    assert work.stored(new).content == "same bytes"


def test_what_users_set_survives_a_new_version(work: Work) -> None:
    work.write("a", "one")
    document = work.stored(work.read("a").object_id)
    document.nickname, document.view, document.locked = "main", ["nickname"], True
    setattr(document, "color", "red")  # noqa: B010  (a field that no model knows)
    work.store.commit(Batch(puts=[document.seal()]))
    work.write("a", "two")
    work.reconcile([document.id])
    after = work.stored(document.id)
    assert (after.content, after.nickname, after.view, after.locked) == (
        "two",
        "main",
        ["nickname"],
        True,
    )
    assert (after.model_extra or {})["color"] == "red"


class TestListed:
    """A metadata-only snapshot."""

    def test_never_hides_known_content(self, work: Work) -> None:
        work.write("a.py", "one")
        work.read("a.py")
        work.write("a.py", "two")
        assert work.disk.sight("a.py", "listed").document is None

    def test_restores_what_was_deleted(self, work: Work) -> None:
        path = work.write("a.py", "one")
        id = work.read("a.py").object_id
        Path(path).unlink()
        work.reconcile([id])
        work.write("a.py", "two")
        work.commit(work.disk.sight("a.py", "listed"))
        assert work.stored(id).content == "two"
