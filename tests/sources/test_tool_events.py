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


def test_bash_refreshes_known_files_and_lists_others(work: Work) -> None:
    work.write("known.py", "one")
    id = work.read("known.py").object_id
    work.write("known.py", "two")
    work.write("other.py", "x")
    found = after(work, "bash", "", command="sed -i s/one/two/ known.py other.py gone.py")
    assert found == ["known.py:mentioned:text", "other.py:mentioned:listed"]
    assert work.stored(id).content == "two"
    assert work.stored(id).provenance.generator == "tool"


def test_a_failed_call_only_looks_at_known_files(work: Work) -> None:
    path = work.write("a")
    event = ToolEvent("read", {"path": "a"}, "EIO", is_error=True, cwd=str(work.folder))
    assert work.disk.after_tool(event) == []
    work.read("a")
    Path(path).unlink()
    (snapshot,) = work.disk.after_tool(event)
    assert snapshot.state == "deleted"


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
