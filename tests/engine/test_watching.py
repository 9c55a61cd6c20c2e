"""Whose change it was, when the watcher sees a file before the tool that wrote it has ended."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from context.messages import assistant, calls, result, user
from foredeck.config import Config
from foredeck.engine.engine import Engine
from foredeck.engine.watching import SessionWatch
from foredeck.hosts.host import Host
from foredeck.hosts.protocol import AssembleResult, ToolObservedParams, ToolStartedParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.store.protocol import Head

WAIT_S = 120.0


class Watched:
    """An engine in a folder of its own; `turn()` runs what its watcher has left for its thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.soon: queue.Queue[Callable[[], None]] = queue.Queue()
        self.engine = self._open()

    def _open(self) -> Engine:
        engine = Engine(Config(home=self.folder / "home"), Host(call_soon=self.soon.put))
        engine.open_session(SimulatedHost("s").opening(str(self.folder)))
        return engine

    def turn(self) -> None:
        self.soon.get(timeout=WAIT_S)()

    def turn_until(self, condition: Callable[[], bool]) -> None:
        """What is being written is looked at until it has come to rest."""
        end = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < end
            self.turn()

    def starts(self, id: str, tool: str, path: str) -> None:
        self.engine.tool_started(ToolStartedParams(session="s", id=id, tool=tool, path=path))

    def ran(self, id: str, tool: str, path: str, said: str, parent: str | None = None) -> None:
        params = ToolObservedParams(
            session="s",
            id=id,
            parent=parent,
            tool=tool,
            input={"path": path},
            content=[{"type": "text", "text": said}],
        )
        self.engine.tool_observed(params)

    def assemble(self, *then: str) -> AssembleResult:
        """A request after the file was read, and what the user has said since."""
        called, host = assistant(calls("t1", "read", path="a.txt")), SimulatedHost("s")
        said = [user("read it"), called, result("t1", "read", "one"), *map(user, then)]
        host.add(*({**message, "timestamp": n} for n, message in enumerate(said)))
        return self.engine.assemble(host.request(1))

    def write_long_ago(self, path: str, text: str) -> None:
        """A file that is at rest as soon as it is there."""
        draft = self.folder / "draft"
        draft.write_text(text)
        os.utime(draft, (1, 1))
        draft.replace(self.folder / path)

    def authors(self, path: str) -> list[str]:
        return [v.fields["provenance"]["generator"] for v in self._versions(path)]

    def sizes(self, path: str) -> list[int]:
        return [v.fields["size"] for v in self._versions(path)]

    def _versions(self, path: str) -> list[Head]:
        session = self.engine.opened.session
        id, _ = session.objects.source.identify(path, str(self.folder))
        return session.objects.store.history(id)

    def restart(self) -> None:
        """The engine ends, and another one takes its place."""
        self.engine.close()
        self.engine = self._open()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """An engine that has read `a.txt` and watches it."""
    (tmp_path / "a.txt").write_text("one")
    made = Watched(tmp_path)
    made.ran("t1", "read", "a.txt", "one")
    made.assemble()
    made.turn()  # whatever has changed until the tracking began
    yield made
    made.engine.close()


@pytest.mark.parametrize("path", ["a.txt", "./sub/../a.txt", "@a.txt"])
def test_what_a_running_tool_writes_is_the_agents(watched: Watched, path: str) -> None:
    watched.starts("t2", "edit", path)
    watched.write_long_ago("a.txt", "two")
    watched.turn()
    assert watched.authors("a.txt") == ["system"]
    watched.ran("t2", "edit", path, "done")
    assert watched.authors("a.txt") == ["system", "agent"]


def test_what_nobody_announced_is_not_the_agents(watched: Watched) -> None:
    watched.starts("t2", "read", "a.txt")
    watched.starts("t3", "edit", path="b.txt")
    (watched.folder / "a.txt").write_text("two")
    watched.turn_until(lambda: watched.authors("a.txt") == ["system", "system"])


def test_a_file_that_was_listed_first_is_watched_once_it_is_read(watched: Watched) -> None:
    watched.write_long_ago("b.txt", "one")
    watched.ran("t2/1", "ls", ".", "b.txt", parent="t2")
    watched.ran("t2/2", "read", "b.txt", "one", parent="t2")
    (watched.folder / "b.txt").write_text("two")
    watched.turn_until(lambda: len(watched.authors("b.txt")) == 3)


def test_a_tool_that_never_ends_hides_nothing(watched: Watched) -> None:
    watched.starts("t2", "edit", path="a.txt")
    watched.write_long_ago("a.txt", "two")
    watched.turn()
    assert watched.authors("a.txt") == ["system"]
    watched.assemble()
    watched.turn_until(lambda: watched.authors("a.txt") == ["system"] * 2)
    (watched.folder / "a.txt").write_text("three")
    watched.turn_until(lambda: watched.authors("a.txt") == ["system"] * 3)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What writes a file takes its time, and no test has to be faster."""
    monkeypatch.setattr("foredeck.sources.looking.EMPTIED_SETTLES_S", 3600.0)


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("ends", [False, True], ids=["the same engine", "the next one"])
def test_a_file_that_is_empty_while_it_is_written_is_no_version(
    watched: Watched, ends: bool
) -> None:
    (watched.folder / "a.txt").write_text("")
    if ends:
        watched.restart()
    else:
        watched.turn()
    watched.assemble("go on")
    assert watched.sizes("a.txt") == [3]
    (watched.folder / "a.txt").write_text("twice")
    watched.ran("t2", "edit", "a.txt", "done")
    assert watched.sizes("a.txt") == [3, 5]
    assert watched.authors("a.txt") == ["system", "agent"]


@pytest.mark.usefixtures("slow")
def test_whoever_writes_is_waited_for(watched: Watched) -> None:
    (watched.folder / "a.txt").write_text("")
    watched.turn()
    (watched.folder / "a.txt").write_text("twice")
    watched.turn_until(lambda: watched.sizes("a.txt") != [3])
    assert watched.sizes("a.txt") == [3, 5]


def test_what_the_user_saved_a_moment_ago_is_told(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foredeck.engine.current.PATIENCE_S", WAIT_S)
    (watched.folder / "a.txt").write_text("twice")
    assert "a.txt changed on disk" in str(watched.assemble("go on")["ops"])


def test_what_the_watcher_has_reported_is_told_though_nobody_has_looked_yet(
    watched: Watched,
) -> None:
    watch = watched.engine.opened.watch
    assert isinstance(watch, SessionWatch)
    tracker = watch._tracker
    (watched.folder / "a.txt").write_text("twice")
    while tracker.differing(tracker._paths):
        time.sleep(0.01)
    assert "a.txt changed on disk" in str(watched.assemble("go on")["ops"])
    watched.turn()
    assert watched.sizes("a.txt") == [3, 5]


def test_what_an_engine_found_half_written_the_next_request_sees(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    (watched.folder / "a.txt").write_text("twice")
    os.utime(watched.folder / "a.txt", (2**32, 2**32))
    watched.restart()
    assert watched.sizes("a.txt") == [3]
    monkeypatch.setattr("foredeck.engine.current.PATIENCE_S", WAIT_S)
    watched.assemble("go on")
    assert watched.sizes("a.txt") == [3, 5]
