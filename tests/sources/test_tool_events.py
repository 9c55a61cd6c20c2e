"""What a tool call touched, as it is on the disk afterwards."""

from __future__ import annotations

from pathlib import Path

from work_folder import Work

from foredeck.sources.disk import DiskSource
from foredeck.sources.snapshots import Limits, ToolEvent


def after(work: Work, tool: str, text: str = "", **arguments: object) -> list[str]:
    event = ToolEvent(tool, arguments, text, cwd=str(work.folder))
    snapshots = work.disk.after_tool(event)
    work.commit(*snapshots)
    return [f"{Path(s.path).name}:{s.role}:{s.state}" for s in snapshots]


def test_read_write_edit(work: Work) -> None:
    work.write("a", "one")
    assert after(work, "read", "one", path="a") == ["a:read:text"]
    work.write("a", "two")
    assert after(work, "write", "ok", path="a", content="two") == ["a:written:text"]
    id = work.disk.identify("a")[0]
    assert work.stored(id).provenance.generator == "agent"
    assert work.stored(id).provenance.origin == "write"


def test_bash_refreshes_known_files_and_lists_others(work: Work) -> None:
    work.write("known.py", "one")
    id = work.read("known.py").object_id
    work.write("known.py", "two")
    work.write("other.py", "x")
    found = after(work, "bash", "", command="sed -i s/one/two/ known.py other.py gone.py")
    assert found == ["known.py:mentioned:text", "other.py:mentioned:listed"]
    assert work.stored(id).content == "two"
    assert work.stored(id).provenance.generator == "tool"


def test_bash_links_a_rename(work: Work) -> None:
    work.write("a.py", "content")
    old = work.read("a.py").object_id
    (work.folder / "a.py").rename(work.folder / "b.py")
    assert after(work, "bash", "", command="git mv a.py b.py") == [
        "a.py:mentioned:deleted",
        "b.py:mentioned:text",
    ]
    new = work.disk.identify("b.py")[0]
    assert work.stored(old).moved_to == new
    assert work.stored(new).provenance.parent_refs == [f"moved_from:{old}"]


def test_a_failed_call_only_looks_at_known_files(work: Work) -> None:
    path = work.write("a")
    event = ToolEvent("read", {"path": "a"}, "EIO", is_error=True, cwd=str(work.folder))
    assert work.disk.after_tool(event) == []
    work.read("a")
    Path(path).unlink()
    (snapshot,) = work.disk.after_tool(event)
    assert snapshot.state == "deleted"


def test_one_snapshot_per_object(work: Work) -> None:
    work.write("a.py")
    found = after(work, "bash", "", command="cat a.py ./a.py $PWD/a.py")
    assert found == ["a.py:mentioned:listed"]


def test_discovery_is_bounded(work: Work) -> None:
    names = [f"f{n}" for n in range(30)]
    for name in names:
        work.write(name)
    disk = DiskSource(work.store, work.filesystems, Limits(discovered_paths=10))
    event = ToolEvent("ls", {}, "\n".join(names), cwd=str(work.folder))
    assert len(disk.after_tool(event)) == 10


def test_a_name_that_the_host_spells_otherwise(work: Work) -> None:
    work.write("re\u0301sume\u0301.md", "x")
    found = after(work, "read", "x", path="r\u00e9sum\u00e9.md")
    assert found == ["re\u0301sume\u0301.md:read:text"]
