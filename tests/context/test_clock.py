"""A clock that is set back by hours in mid-session: what is sent, kept and judged."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.scenes import ask, bash, finish, later
from context.sent import Sent, as_bytes
from foredeck.context.messages.items import Item
from foredeck.context.messages.transcript import TranscriptNames, pause_marks
from foredeck.model.calls import CallRecord
from foredeck.model.documents import ToolcallDocument
from foredeck.model.messages import MessageKey
from foredeck.store.store import open_sqlite

BACK_S = -5 * 3600
MINUTE_MS = 60_000


def work(host: Host, *, step_s: int) -> list[Sent]:
    """Three turns; the clock is set back in the second, and the engine is another in the third.

    `invariants.check` compares what the store shows of each call with what was sent.
    """
    for turn in range(3):
        ask(host, f"Turn {turn}")
        for number in range(3):
            if (turn, number) == (1, 1):
                host.wait(step_s)
            if (turn, number) == (2, 1):
                host.restart()
            bash(host, f"c{turn}{number}")
        finish(host)
    return list(host.past.sent)


@pytest.fixture
def stepping(new_host: NewHost, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A host whose store goes by the host's clock."""

    def make(**options: Any) -> Host:
        host = new_host(**options)
        clocked = partial(open_sqlite, clock=lambda: host.now_ms)
        monkeypatch.setattr("foredeck.store.place.open_sqlite", clocked)
        return host

    return make


@pytest.mark.parametrize("policy", ["adaptive", "seed-window"])
@pytest.mark.parametrize("layout", ["anchored", "pools"])
def test_a_clock_set_back_changes_no_prompt(stepping: Any, layout: str, policy: str) -> None:
    made = [stepping(session=name, layout=layout, policy=policy) for name in ("s", "t")]
    steady, shaken = (work(h, step_s=s) for h, s in zip(made, (0, BACK_S), strict=True))
    assert [sent.decision for sent in steady] == [sent.decision for sent in shaken]
    for one, other in zip(steady, shaken, strict=True):
        assert as_bytes(one.prompt) == as_bytes(other.prompt)


def test_what_was_written_after_it_is_the_newest_and_nothing_is_lost(stepping: Any) -> None:
    host = stepping()
    sent = work(host, step_s=BACK_S)
    calls = [CallRecord(head.fields) for head in host.store.query("call", {"session": "s"})]
    assert [record.ordinal for record in calls] == list(range(1, len(sent) + 1))
    times = [record.time_ms for record in calls]
    assert times != sorted(times)
    turns = host.store.query("turn", {"session": "s"})
    chat = host.store.head("chat:s")
    assert chat.fields["turn_count"] == len(turns)
    assert [head.fields["turn_count"] for head in host.store.history("chat:s")] == list(
        range(len(host.store.history("chat:s")))
    )
    outputs = [m for m in host.messages if m["role"] == "toolResult"]
    for message in outputs:
        kept = host.store.get(message["toolCallId"], ToolcallDocument)
        assert kept.content == message["content"][0]["text"]


def test_the_cache_is_judged_by_the_time_since_the_newest_call(stepping: Any) -> None:
    host = stepping()
    work(host, step_s=BACK_S)
    host.wait(200)
    assert ask(host).decision.reason != "cold"
    assert later(host, seconds=400).decision.reason == "cold"


def test_a_pause_after_it_is_marked_and_the_step_is_none() -> None:
    minutes = [600, 601, 301, 302, 350]
    items = [Item(MessageKey(None, str(m)), "user", [], m * MINUTE_MS) for m in minutes]
    marks = pause_marks(items, TranscriptNames(lambda _: None, ""))
    assert list(marks) == [4]
    assert marks[4].startswith("(paused 48 min, until ")
