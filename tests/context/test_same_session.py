"""One session that two processes work on at once: nothing of either is overwritten."""

from __future__ import annotations

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import assistant, calls
from context.scenes import bash, context_tool, go_on, use
from context.sent import last


@pytest.fixture
def pair(new_host: NewHost) -> tuple[Host, Host]:
    """Two hosts of one session, with the same two calls behind them."""
    one = new_host().begin()
    bash(one, "c1")
    other = new_host()
    other.messages, other.entries = list(one.messages), list(one.entries)
    other._made, other.now_ms = one._made, one.now_ms
    other.past.sent, other.past.handles = list(one.past.sent), dict(one.past.handles)
    assert len(other.state.objects.index) == 3
    return one, other


def test_each_call_has_a_record_of_its_own(pair: tuple[Host, Host]) -> None:
    one, other = pair
    first, second = bash(other, "theirs"), bash(one, "ours")
    assert (first.call, second.call) == (3, 4)
    assert one.shown(3).messages == first.prompt
    assert one.shown(4).messages == second.prompt
    assert [len(one.store.history(f"call:s:{number}")) for number in (3, 4)] == [1, 1]


def test_a_handle_means_one_object_to_both(pair: tuple[Host, Host]) -> None:
    one, other = pair
    assert last(bash(other, "theirs")).startswith("@4\n")
    assert last(bash(one, "ours")).startswith("@5\n")
    assert "output of theirs" in last(context_tool(one, "t1", "activate", "@4"))
    go_on(other)
    assert "output of ours" in last(context_tool(other, "t2", "activate", "@5"))


def test_a_tool_takes_the_next_free_handle(pair: tuple[Host, Host], new_host: NewHost) -> None:
    one, other = pair
    third = new_host(session="third").begin()
    use(third, "r", "read", "known to the third\n" * 30, path="/repo/known.txt")
    bash(other, "theirs")
    one.add(
        assistant(calls("t1", "activate", id="/repo/known.txt")),
        one.tool("t1", "activate", id="/repo/known.txt"),
    )
    sent = one.call()
    assert last(sent).startswith("@5\nknown to the third")
    assert one.state.objects.index.entries[4].label == "theirs"
