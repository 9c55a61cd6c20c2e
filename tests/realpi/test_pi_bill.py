"""What the twin charges for a session is what foredeck has foreseen, and what it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from foredeck.accounting.figure import session_figure
from foredeck.lookup.sessions import newest_calls
from foredeck_agents.histories.recordings import load_recording
from foredeck_bench.playback import RecordedPlay, play_both, replayed
from foredeck_bench.scripted.pi_rpc import RpcPi
from foredeck_bench.twin.script import Api, Step, Thinking, call
from harness import Pi
from observed import answered, calls_of, stored

WINDOW = 200_000
CALLS = 40


@pytest.mark.parametrize("model", ["claude-opus-5-5", "gpt-6.2-sol"])
def test_a_recorded_session_costs_what_the_twin_charges(
    pi: Pi, checkout: Path, tmp_path: Path, model: str
) -> None:
    recording = checkout / "tests" / "recordings" / "long.jsonl"
    recorded = RecordedPlay.of(load_recording(recording), CALLS)
    plain, ours = play_both(recorded, pi.install, tmp_path / "played", model, WINDOW)
    assert len(plain.calls) == len(ours.calls) == CALLS
    assert ours.figure.ours == pytest.approx(ours.dollars, rel=0.01)
    # Its first prompt is 18 tokens short of what Anthropic keeps, which no estimate can tell.
    assert ours.figure.plain == pytest.approx(plain.dollars, rel=0.01, abs=0.005)
    told = replayed(plain.session_file, model, WINDOW)
    assert told["plain_pi"] == pytest.approx(plain.dollars, rel=0.01, abs=0.005)
    assert told["foredeck"] == pytest.approx(ours.dollars, rel=0.03)
    assert plain.host == pytest.approx(plain.total)
    assert ours.host == pytest.approx(ours.total)


def off_and_on(_: Pi, rpc: RpcPi) -> RpcPi:
    """foredeck is off for a turn."""
    rpc.command("/foredeck off")
    rpc.prompt("Two.")
    rpc.command("/foredeck on")
    return rpc


def resumed(pi: Pi, rpc: RpcPi) -> RpcPi:
    """Another process goes on."""
    rpc.prompt("Two.")
    rpc.shutdown()
    return pi.rpc(foredeck=True, arguments=["--thinking", "low", "--continue"])


def other_effort(_: Pi, rpc: RpcPi) -> RpcPi:
    """The model is to think more."""
    rpc.send("set_thinking_level", level="high")
    rpc.prompt("Two.")
    return rpc


def forked(_: Pi, rpc: RpcPi) -> RpcPi:
    """The user goes back before their second question."""
    rpc.prompt("Two.")
    rpc.fork(1)
    return rpc


def stopped(_: Pi, rpc: RpcPi) -> RpcPi:
    """The user stops a command."""
    rpc.send("prompt", message="Two.")
    rpc.wait_event(lambda event: event.get("type") == "tool_execution_start", len(rpc.events) - 1)
    rpc.abort()
    return rpc


APIS: tuple[Api, ...] = ("anthropic-messages", "openai-completions")
STEP = 128
"""Tokens; the cache of the last one is read in steps of so many."""


@pytest.mark.parametrize(
    ("happens", "api"),
    [
        *((each, APIS[0]) for each in (off_and_on, resumed, other_effort, forked, stopped)),
        (other_effort, APIS[1]),
    ],
)
def test_what_is_read_again_is_foreseen(
    pi: Pi, api: Api, happens: Callable[[Pi, RpcPi], RpcPi]
) -> None:
    def turn(first: int) -> list[Step]:
        return [
            *(
                [Thinking(f"thought {n}"), call("bash", command=f"seq {n}00 {n}99")]
                for n in range(first, first + 4)
            ),
            "done",
        ]

    waits: list[Step] = [call("bash", command="sleep 30")] if happens is stopped else turn(20)
    model = pi.serve([*turn(10), *waits, *turn(30)], api=api)
    rpc = pi.rpc("One.", foredeck=True, arguments=["--thinking", "low"])
    rpc = happens(pi, rpc)
    rpc.prompt("Three.")
    with stored(pi) as store:
        records = calls_of(store)
        sessions = [str(head.fields["session_id"]) for head in store.query("session")]
        figures = [
            session_figure(store, session, newest)
            for session, newest in newest_calls(store, sessions).items()
        ]
    requests = answered(model)
    assert len(records) == len(requests)
    pairs = [
        (record.cache, request.usage)
        for record, request in zip(records, requests, strict=True)
        if not record.is_host and request.usage
    ]
    for cache, usage in pairs:
        foreseen = (cache.read or 0) + (cache.written or 0) + (cache.fresh or 0)
        share = (cache.read or 0) / foreseen
        slack = 0.02 + STEP / usage.prompt * (api == "openai-completions")
        assert share == pytest.approx(usage.read / usage.prompt, abs=slack)
    bill = sum(model.record.dollars(replace(usage, output=0)) for _, usage in pairs)
    assert sum(figure.ours for figure in figures) == pytest.approx(
        bill, rel=0.02 if api != "openai-completions" else 0.25
    )
