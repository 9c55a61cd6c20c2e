"""Calls that went out without the engine's word: late answers, no engine, off, aborted."""

from __future__ import annotations

import pytest

from context.driver import Host
from context.messages import assistant, calls, lines, result
from context.scenes import ask, bash, go_on
from context.sent import Sent, as_bytes
from foredeck.context.plan import codec
from foredeck.model.call_values import Ack, OpRow
from foredeck.model.calls import in_order


def raw(sent: Sent, index: int) -> bool:
    return sent.parts[index] == [sent.messages[index]]


@pytest.fixture(params=[True, False], ids=["names the call", "names none"])
def started(host: Host, request: pytest.FixtureRequest) -> Host:
    """A session of two calls: one result stands in it with its handle."""
    host.names_call = request.param
    ask(host, "Look around.")
    bash(host, "c1")
    return host


def add_output(host: Host, id: str) -> None:
    host.add(assistant(calls(id, "bash", command=id)), result(id, "bash", lines(20, id)))


def test_a_call_without_us_has_one_record_however_often_it_is_reported(host: Host) -> None:
    ask(host, "Look around.")
    for id in ("c2", "c3", "c4"):
        add_output(host, id)
        host.lose()
    host.restart()
    add_output(host, "c5")
    host.lose()
    bash(host, "c6")
    records = in_order(head.fields for head in host.store.query("call", {"session": "s"}))
    assert sum(record.is_host for record in records) == 4
    told = [ack.call for r in records for ack in r.acks if ack.outcome == "fallback"]
    assert len(told) == len(set(told)) == 4
    assert len(records) - len(told) == len(host.past.sent)


def test_a_call_without_us_that_was_reported_already_holds_for_its_own_list_alone(
    host: Host,
) -> None:
    ask(host)
    bash(host, "c1")
    leaf = host.leaf()
    add_output(host, "c2")
    host.lose()
    add_output(host, "c3")
    host.lose()
    host.go_to(leaf)
    sent = bash(host, "other")
    assert [raw(sent, index) for index in (2, 4)] == [False, False]
    assert sent.record.parent == "call:s:2"


def test_a_long_time_without_foredeck_is_read_message_by_message_once(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        add_output(host, f"c{number}")
        host.off()
    sent = bash(host, "last")
    rows: list[OpRow] = []
    monkeypatch.setattr(codec, "_row_as_host", lambda row: rows.append(row) or row)
    host.shown(sent.call)
    assert len(rows) <= len(sent.messages)


def test_a_call_that_the_user_stopped_is_reported_and_not_taken_for_sent(started: Host) -> None:
    add_output(started, "c2")
    started.abort()
    started.add(assistant("Half an ans", stop="aborted"))
    sent = ask(started, "Try again.")
    assert Ack(sent.call - 1, "aborted") in started.shown(sent.call).record.acks
    assert f"call:s:{sent.call - 1}" in started.state.chat.log.unsent


def test_a_late_answer_is_distinguished_from_a_sent_one_after_a_restart(started: Host) -> None:
    add_output(started, "c2")
    late = started.lose()
    started.restart()
    sent = go_on(started)
    unsent = started.state.chat.log.unsent
    assert unsent == ({"call:s:3"} if started.names_call else set())
    assert as_bytes(sent.prompt[: len(late.prompt)]) == as_bytes(late.prompt)
    started.restart()
    add_output(started, "c3")
    again = started.call()
    assert as_bytes(again.prompt[: len(sent.prompt)]) == as_bytes(sent.prompt)
