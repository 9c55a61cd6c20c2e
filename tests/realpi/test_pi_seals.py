"""A long turn with sealed reasoning on a wire of which nobody says that it binds what is before."""

from __future__ import annotations

import json

from foredeck.context.calls.deciding import TURN_ENDED
from foredeck.model.quoting import is_reference
from foredeck_bench.twin.script import Step, Thinking, call
from foredeck_bench.twin.server import RecordedRequest, ScriptedModel
from harness import EAGER, Pi
from observed import calls_of, notified, results, stored


def sealed(number: int, lines: int = 400) -> Step:
    """A step of the loop: encrypted reasoning, and a command with a long output."""
    command = f"seq {number}000 {number * 1000 + lines}"
    return [Thinking("", redacted=True), call("bash", command=command)]


TURN: list[Step] = [*map(sealed, range(1, 8)), "done"]


def refused(model: ScriptedModel) -> list[int]:
    """Which requests the provider has refused."""
    return [n for n, each in enumerate(model.requests) if each.status == 400]


def folded(recorded: RecordedRequest) -> list[int]:
    """Which results of a prompt are lines."""
    return [n for n, text in enumerate(results(recorded)) if is_reference(text)]


def test_after_a_pause_a_turn_goes_on_without_the_reasoning_that_bound_it(pi: Pi) -> None:
    pause = [Thinking("", redacted=True), call("bash", command="sleep 3; seq 8000 9400")]
    long: list[Step] = [*(sealed(number, 1400) for number in range(1, 8)), pause]
    model = pi.serve([*long, *TURN[-2:]], api="anthropic-messages", plain=True, reasoning=True)
    patient = EAGER | {
        "FOREDECK_REBASE__CACHE_TTL_S": "2",
        "FOREDECK_REBASE__CARRYING_FACTOR": "1000",
    }
    rpc = pi.rpc("go", foredeck=True, environment=patient)
    assert len(model.requests) == len(long) + 2
    after = model.requests[len(long)]
    assert folded(after)
    assert "After a pause" in json.dumps(after.request.messages[-1])
    assert [text for text in notified(rpc) if "after the pause" in text] == [TURN_ENDED]
    rpc.shutdown()


def test_where_the_provider_refuses_that_the_turn_goes_on_with_the_old_bytes(pi: Pi) -> None:
    model = pi.serve([*TURN, *TURN], api="openai-responses", plain=True, reasoning=True, binds=True)
    rpc = pi.rpc("go", foredeck=True, environment=EAGER)
    (first,) = refused(model)
    assert folded(model.requests[first])
    again, before = model.requests[first + 1], model.requests[first - 1]
    count = len(before.request.messages)
    assert again.request.messages[:count] == before.request.messages
    assert len(model.requests) == len(TURN) + 1, "made again once, and the turn ended"
    assert len([text for text in notified(rpc) if "scripted/scripted-1 refused" in text]) == 1
    rpc.shutdown()
    with stored(pi) as store:
        calls = calls_of(store)
    assert len(calls) == len(model.requests)
    # What it has learned holds for the next session, in another engine.
    assert pi.print("go", foredeck=True, environment=EAGER).stdout.strip() == "done"
    assert refused(model) == [first]
    assert folded(model.requests[-1]) == []
