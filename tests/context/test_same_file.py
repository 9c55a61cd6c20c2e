"""Two sessions that look at one changed file at once: the same bytes are one version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from context.conftest import NewHost
from context.scenes import ask, finish
from context.sent import as_bytes
from context.working import Work

OLD, NEW = "old\n" * 30, "new\n" * 30


@pytest.fixture
def pair(new_host: NewHost, tmp_path: Path) -> tuple[Work, Work]:
    """Two agents in one folder; both have read `a.py`."""
    folder = tmp_path / "repo"
    folder.mkdir()
    made = []
    for name in ("one", "two"):
        work = Work(new_host(session=name, cwd=str(folder), disk=True))
        made.append(work)
        ask(work.host)
        work.file("a.py", OLD)
        work.read("a.py")
        finish(work.host)
    return made[0], made[1]


def origins(work: Work) -> list[str]:
    """Who has brought about each version of the file, the oldest first."""
    id, _ = work.host.state.objects.source.identify("a.py")
    return [v.fields["provenance"]["origin"] for v in work.host.store.history(id)]


def version(work: Work) -> int:
    """Which version of the file the session has seen last."""
    id, _ = work.host.state.objects.source.identify("a.py")
    index = work.host.state.objects.index
    return index.entries[index.by_object[id]].newest.version


def meanwhile(source: Any, method: str, happens: Any) -> None:
    """Once, what a look has found is stored only after something else has happened."""
    look = getattr(source, method)

    def late(*arguments: Any, **options: Any) -> Any:
        found = look(*arguments, **options)
        if any(snapshot.document for snapshot in found):
            setattr(source, method, look)
            happens()
        return found

    setattr(source, method, late)


def test_the_agent_is_faster_than_the_others_watcher(pair: tuple[Work, Work]) -> None:
    one, two = pair
    ask(one.host)
    one.file("a.py", NEW)
    meanwhile(two.host.state.objects.source, "reconcile", lambda: one.write("a.py", NEW))
    two.notice_changes()
    assert origins(one) == ["disk", "write"]
    assert (version(one), version(two)) == (2, 2)
    assert "a.py changed on disk" in as_bytes(ask(two.host).prompt)


def test_the_others_watcher_is_faster_than_the_agent(pair: tuple[Work, Work]) -> None:
    one, two = pair
    ask(one.host)
    meanwhile(one.host.state.objects.source, "after_tool", two.notice_changes)
    one.write("a.py", NEW)
    assert origins(one) == ["disk", "disk"]
    assert (version(one), version(two)) == (2, 2)
    assert "changed on disk" not in as_bytes(ask(one.host).prompt)
