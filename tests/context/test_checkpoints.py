"""A checkpoint stands for the call records before it, and for nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from context.driver import Host
from context.messages import assistant, calls, result, user
from context.restored import check_restored, looked_up
from context.sent import as_bytes
from foredeck.context.state.call_log import CallLog, LogCheckpoint
from foredeck.engine import resumption
from foredeck.engine.resumption import recall_session
from foredeck.store.session_cache import drop_cached

CALLS = 6


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A session of some calls whose engine has ended."""
    monkeypatch.setattr(resumption, "MIN_CALLS", 1)
    host = Host(tmp_path)
    host.add(user("Begin."))
    for number in range(CALLS):
        if number == 3:
            host.abort()
        host.call()
        asked = assistant(calls(f"c{number}", "bash", command=f"echo {number}"))
        host.add(asked, result(f"c{number}", "bash", f"{number}\n" * 100))
    host.close()
    yield host
    host.close()


def kept(host: Host) -> LogCheckpoint:
    checkpoint = recall_session(host.home, host.session).checkpoint
    assert checkpoint is not None
    return checkpoint


def whole(host: Host) -> CallLog:
    return CallLog.load(host.store.query("call", {"session": host.session}))


def test_only_records_after_it_are_read(host: Host) -> None:
    checkpoint = kept(host)
    host.add(assistant("Hm."), user("And?"))
    host.call()
    log = CallLog.resume(checkpoint, host.store, host.session)
    assert log is not None
    assert list(log._records) == list(whole(host).records)[-2:]
    assert looked_up(log) == looked_up(whole(host))


def test_an_open_session_lets_go_of_the_records_before_it(host: Host) -> None:
    for answer, question in (("Hm.", "And?"), ("Well.", "Go on.")):
        host.add(assistant(answer), user(question))
        host.call()
        log = host.state.chat.log
        assert list(log._records) == list(whole(host).records)[-1:]
        check_restored(host)
        assert list(log._records) == list(whole(host).records)[-1:]
    assert log.records == whole(host).records


def test_an_earlier_call_is_found_through_it(host: Host) -> None:
    first = host.past.sent[0]
    host.back(1)
    assert as_bytes(host.call().prompt) == as_bytes(first.prompt)
    assert host.state.chat.log.records == whole(host).records


def test_records_of_another_engine_are_read_after_it(host: Host) -> None:
    checkpoint = kept(host)
    other = Host(host.home)
    other.messages, other.entries = list(host.messages), list(host.entries)
    other._made, other.now_ms = host._made, host.now_ms
    other.call()
    log = CallLog.resume(checkpoint, other.store, host.session)
    assert log is not None
    assert looked_up(log) == looked_up(whole(host))
    other.close()


@pytest.mark.parametrize(
    "other", [{"token": "t"}, {"store": ["s", 0]}, {"store": None}, {"call": "call:s:99"}]
)
def test_one_of_another_history_is_ignored(host: Host, other: dict[str, Any]) -> None:
    checkpoint = replace(kept(host), **other)
    assert CallLog.resume(checkpoint, host.store, host.session) is None


def test_a_fork_has_none(host: Host) -> None:
    fork = host.fork("fork")
    fork.add(assistant("Hm."), user("In the copy."))
    fork.call()
    fork.close()
    assert recall_session(fork.home, fork.session).checkpoint is None


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"format": 0}', b"\xff"])
def test_what_is_none_of_this_code_is_ignored(data: bytes) -> None:
    assert LogCheckpoint.from_bytes(data) is None


def test_it_goes_with_what_else_was_kept(host: Host) -> None:
    drop_cached(host.home, host.session)
    assert recall_session(host.home, host.session).checkpoint is None
