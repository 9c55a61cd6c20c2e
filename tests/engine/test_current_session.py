"""The session at hand: forgotten where work on it fails, opened again from the store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from context.messages import assistant, calls, result, user
from foredeck.config import Config
from foredeck.engine.engine import Engine
from foredeck.errors import StoreError, ToolError, UnknownSession
from foredeck.hosts.host import Host
from foredeck.hosts.protocol import (
    CommandParams,
    SessionCloseParams,
    SessionCompactParams,
    SessionEventParams,
    ToolCallParams,
    ToolObservedParams,
)
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.store.place import open_store
from foredeck.store.protocol import Batch, Token

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Look.", "timestamp": 1},
    {"role": "assistant", "content": [{"type": "text", "text": "Hm."}], "timestamp": 2},
    {"role": "user", "content": "And?", "timestamp": 3},
]


class FailingStore:
    """A store whose commits fail while `fails` is set."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.fails = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, batch: Batch, **more: Any) -> Token:
        if self.fails:
            raise StoreError("the disk is full")
        token: Token = self._store.commit(batch, **more)
        return token


class Opened:
    """An engine with the session `s` open, on a store that can be made to fail."""

    def __init__(self, home: Path) -> None:
        self.store = FailingStore(open_store(Config(home=home)))
        self.engine = Engine(Config(home=home), store=self.store)
        self.open("s")

    def open(self, session: str) -> int:
        return self.engine.open_session(SimulatedHost(session).opening("/"))["calls"]

    def assemble(self) -> int:
        host = SimulatedHost("s")
        host.add(*MESSAGES, entries=[None] * 3)
        return self.engine.assemble(host.request(4))["call"]

    def observe(self) -> None:
        content = [{"type": "text", "text": "out"}]
        self.engine.tool_observed(
            ToolObservedParams(session="s", id="c", tool="bash", content=content)
        )

    def answer(self) -> None:
        message = {"role": "assistant", "content": [{"type": "text", "text": "So."}]}
        self.engine.session_event(
            SessionEventParams(session="s", kind="answer", message={**message, "timestamp": 5})
        )

    def compact(self) -> None:
        self.engine.compact(
            SessionCompactParams(session="s", reason="overflow", messages=MESSAGES[:2], time_ms=5)
        )

    def summary(self) -> None:
        """The host's model has written the summary of a compaction."""
        self.engine.compact(
            SessionCompactParams(session="s", reason="manual", messages=MESSAGES[:2], time_ms=5)
        )
        self.engine.session_event(SessionEventParams(session="s", kind="compact", summary="Hm."))


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    made = Opened(tmp_path / "home")
    yield made
    made.store.fails = False
    made.engine.close()


@pytest.mark.parametrize("work", [Opened.observe, Opened.answer, Opened.compact, Opened.summary])
def test_a_session_is_forgotten_where_a_commit_fails_and_opened_again(
    opened: Opened, work: Callable[[Opened], None]
) -> None:
    call = opened.assemble()
    opened.store.fails = True
    with pytest.raises(StoreError):
        work(opened)
    assert opened.engine.opened is None
    opened.store.fails = False
    work(opened)
    assert opened.engine.opened.session.chat.log.newest == call


def test_a_refusal_for_the_model_leaves_the_session_as_it_is(opened: Opened) -> None:
    opened.assemble()
    session = opened.engine.opened
    with pytest.raises(ToolError):
        opened.engine.tool_call(
            ToolCallParams(session="s", id="t", tool="activate", input={"id": "@99"})
        )
    assert opened.engine.opened is session


def test_only_the_session_that_is_open_is_served_and_closed(opened: Opened) -> None:
    with pytest.raises(UnknownSession, match="other"):
        opened.engine.command(CommandParams(session="other", name="view"))
    opened.engine.close_session(SessionCloseParams(session="other"))
    assert opened.engine.opened is not None
    opened.engine.close_session(SessionCloseParams(session="s"))
    with pytest.raises(UnknownSession):
        opened.assemble()


def test_a_session_opened_again_by_this_host_still_counts_its_own_calls(opened: Opened) -> None:
    """Of the calls since the host opened it, only those went out that its outcomes name."""
    call = opened.assemble()
    opened.store.fails = True
    with pytest.raises(StoreError):
        opened.observe()
    opened.store.fails = False
    opened.observe()
    assert opened.engine.opened.session.info.calls_at_opening == 0
    assert opened.open("s") == call


def test_a_session_ends_also_where_what_it_has_left_cannot_be_kept(opened: Opened) -> None:
    keeper = opened.engine.opened.keeper
    assert keeper is not None

    def fail(_seconds: float) -> None:
        raise StoreError("the disk is full")

    keeper.settle = fail
    assert opened.open("other") == 0
    assert opened.engine.opened.session.info.id == "other"


def test_opening_another_session_ends_the_watch_of_the_one_before(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    read = assistant(calls("c", "read", path="a.txt"))
    messages = [user("Read it."), read, result("c", "read", "one")]
    engine = Engine(Config(home=tmp_path / "home"), Host(call_soon=lambda _function: None))
    for session in ("one", "two"):
        host = SimulatedHost(session)
        host.add(*({**message, "timestamp": n} for n, message in enumerate(messages)))
        engine.open_session(host.opening(str(tmp_path)))
        engine.assemble(host.request(4))
        assert _trackers() == 1
    engine.close()
    assert _trackers() == 0


def _trackers() -> int:
    return sum(thread.name == "foredeck-tracker" for thread in threading.enumerate())
