"""Policy `seed-window`: the newest results of each of the newest user turns stay."""

from __future__ import annotations

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import ask, context_tool, go_on, later, outputs, use
from context.sent import Sent, last
from foredeck.model.quoting import is_reference


@pytest.fixture
def host(new_host: NewHost) -> Host:
    """One in which each result is told by itself, and none by the text of a run."""
    return new_host(adaptive={"fold_runs_after": 0})


def folded(sent: Sent) -> list[int]:
    """Messages that went out as a reference."""
    return [index for index in range(len(sent.messages)) if is_reference(sent.text(index))]


def test_the_sixth_newest_result_of_a_turn_goes(host: Host) -> None:
    ask(host)
    outputs(host, 7)
    assert folded(later(host)) == [2, 4]


def test_per_turn_and_turns_can_be_configured(new_host: NewHost) -> None:
    host = new_host(seed_window={"per_turn": 1, "turns": 2}).begin()
    outputs(host, 2)
    assert folded(later(host)) == [2]
    assert folded(later(host)) == [2, 4]


def test_an_activation_starts_the_window_anew(host: Host) -> None:
    ask(host)
    outputs(host, 1)
    go_on(host, "Turn two")
    context_tool(host, "t", "activate", "@3")
    later(host, "Turn three")
    assert folded(later(host, "Turn four")) == []
    assert folded(later(host, "Turn five")) == [2]


def test_what_a_result_in_flight_says_stands_above_stays_with_it(host: Host) -> None:
    part = {"path": "/repo/a.py", "offset": 6, "limit": 10}
    ask(host)
    for id, where, text in (("a", part, lines(10)), ("b", {"path": "/repo/a.py"}, lines(30, "b"))):
        use(host, id, "read", text, **where)
    host.wait(600)
    sent = use(host, "c", "read", lines(10), **part)
    assert "above" in last(sent)
    assert 2 not in folded(sent)
