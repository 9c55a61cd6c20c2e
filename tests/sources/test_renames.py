"""Renames: history is followed across them, in both directions."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from work_folder import Work

from foredeck.sources.snapshots import ToolEvent


def assert_moved(work: Work, old: str, new: str) -> None:
    assert work.stored(old).state == "deleted"
    assert work.stored(old).moved_to == new
    assert f"moved_from:{old}" in work.stored(new).provenance.parent_refs


def test_a_rename_and_back(work: Work) -> None:
    path = work.write("a", "content")
    both = [path, str(work.folder / "b")]
    old = work.read("a").object_id
    Path(path).rename(work.folder / "b")
    work.reconcile(both)
    new = work.disk.identify("b")[0]
    (work.folder / "b").rename(path)
    work.reconcile(both)
    assert_moved(work, new, old)
    assert (work.stored(old).state, work.stored(old).moved_to) == ("text", None)


def test_many_renames_keep_their_pairs(work: Work) -> None:
    names = [f"f{n}" for n in range(20)]
    ids = {}
    for n, name in enumerate(names):
        work.write(f"old/{name}", f"content {n % 3}")
        ids[name] = work.read(f"old/{name}").object_id
    shutil.move(work.folder / "old", work.folder / "new")
    work.reconcile([str(work.folder / side / n) for side in ("old", "new") for n in names])
    for name in names:
        assert_moved(work, ids[name], work.disk.identify(f"new/{name}")[0])


def test_a_copy_is_no_rename(work: Work) -> None:
    work.write("a", "content")
    old = work.read("a").object_id
    shutil.copy(work.folder / "a", work.folder / "b")
    work.reconcile([old, str(work.folder / "b")])
    assert work.stored(old).state == "text"
    assert work.disk.sight("b", "listed").head is None


@pytest.mark.parametrize(("before", "after"), [("one", "two"), ("", "")])
def test_other_bytes_or_no_bytes_tie_nothing(work: Work, before: str, after: str) -> None:
    a = work.write("a", before)
    old = work.read("a").object_id
    Path(a).unlink()
    b = work.write("b", after)
    work.reconcile([a, b])
    assert work.stored(old).moved_to is None
    assert work.store.head(work.disk.identify("b")[0]) is None


def test_a_listed_file_that_is_renamed_is_only_gone(work: Work) -> None:
    path = work.write("a", "content")
    work.commit(work.disk.sight("a", "listed"))
    Path(path).rename(work.folder / "b")
    work.reconcile([path, str(work.folder / "b")])
    old = work.stored(work.disk.identify("a")[0])
    assert (old.state, old.moved_to) == ("deleted", None)


def test_a_rename_is_found_though_nobody_tells_where_to(work: Work) -> None:
    path = Path(work.write("a", "content"))
    old = work.read("a").object_id
    for target in ("b", "deep/er/b"):
        (work.folder / target).parent.mkdir(parents=True, exist_ok=True)
        path.rename(work.folder / target)
        work.reconcile([old])
        new = work.disk.identify(target)[0]
        assert_moved(work, old, new)
        assert work.stored(new).content == "content"
        path, old = work.folder / target, new


def test_a_renamed_folder_takes_its_files_along(work: Work) -> None:
    work.write("old/a", "content of a")
    work.write("old/sub/b", "content of b")
    olds = [work.read(name).object_id for name in ("old/a", "old/sub/b")]
    (work.folder / "old").rename(work.folder / "new")
    work.reconcile(olds)
    for old, name in zip(olds, ("new/a", "new/sub/b"), strict=True):
        assert_moved(work, old, work.disk.identify(name)[0])


def test_a_rename_over_a_file_that_nobody_reported(work: Work) -> None:
    a, b = work.write("a", "from a"), work.write("b", "from b")
    old, new = work.read("a").object_id, work.read("b").object_id
    Path(a).replace(b)
    work.reconcile([old])
    assert_moved(work, old, new)
    assert work.stored(new).content == "from a"


@pytest.mark.parametrize("command", ["mv a.txt lib/", "git mv a.txt lib", "mv *.txt lib/"])
def test_a_command_that_moves_a_file_into_a_folder(work: Work, command: str) -> None:
    path = Path(work.write("a.txt", "content"))
    old = work.read("a.txt").object_id
    (work.folder / "lib").mkdir()
    path.rename(work.folder / "lib" / "a.txt")
    event = ToolEvent("bash", {"command": command}, "", cwd=str(work.folder))
    work.commit(*work.disk.after_tool(event))
    work.reconcile([old])
    assert_moved(work, old, work.disk.identify("lib/a.txt")[0])


def test_an_inode_that_another_file_has_now_ties_nothing(work: Work) -> None:
    path = work.write("a", "content")
    old = work.read("a").object_id
    Path(path).rename(work.folder / "b")
    work.write("b", "other words")
    work.reconcile([old])
    assert work.stored(old).moved_to is None


def anew(work: Work) -> Work:
    """The same folder and store in another process: nothing of the disk is remembered."""
    return Work(work.folder, work.store)


@pytest.mark.parametrize("target", ["b", "deep/er/b"])
def test_a_rename_while_nobody_ran_is_found_by_its_bytes(work: Work, target: str) -> None:
    path = Path(work.write("sub/a", "content"))
    work.write("as-long", "kontent")
    old = work.read("sub/a").object_id
    (work.folder / target).parent.mkdir(parents=True, exist_ok=True)
    path.rename(work.folder / target)
    again = anew(work)
    again.reconcile([old])
    assert_moved(again, old, again.disk.identify(target)[0])


def test_a_new_name_that_was_stored_first_is_found(work: Work) -> None:
    path = Path(work.write("a", "content"))
    old = work.read("a").object_id
    path.rename(work.folder / "b")
    new = anew(work).read("b").object_id
    anew(work).reconcile([old])
    assert_moved(work, old, new)
    assert work.stored(new).content == "content"


def test_what_was_there_before_or_was_made_by_an_agent_is_a_copy(work: Work) -> None:
    for name in ("earlier", "a"):
        work.write(name, "content")
        work.read(name)
    old = work.disk.identify("a")[0]
    work.write("later", "content")
    event = ToolEvent("write", {"path": "later", "content": "content"}, "", cwd=str(work.folder))
    work.commit(*work.disk.after_tool(event))
    Path(work.folder / "a").unlink()
    (snapshot,) = anew(work).reconcile([old])
    assert (work.stored(old).state, work.stored(old).moved_to) == ("deleted", None)
    assert snapshot.candidates == ()


def test_of_several_places_none_is_guessed(work: Work) -> None:
    for name in ("x/notes.md", "a"):
        work.write(name, "content")
        work.read(name)
    olds = [work.disk.identify(name)[0] for name in ("x/notes.md", "a")]
    (work.folder / "x/notes.md").rename(work.folder / "notes.md")
    (work.folder / "a").rename(work.folder / "b")
    work.write("c", "content")
    again = anew(work)
    named, unclear, *_ = again.reconcile(olds)
    assert_moved(again, named.object_id, again.disk.identify("notes.md")[0])
    assert again.stored(unclear.object_id).moved_to is None
    assert unclear.candidates == tuple(str(work.folder / name) for name in ("b", "c"))
