"""What Anthropic's cache, simulated on Pi's own requests, holds; beside what was predicted."""

from __future__ import annotations

from typing import Any

from foredeck_bench.twin.script import Step, call
from foredeck_bench.twin.server import RecordedRequest
from harness import EAGER, Pi
from observed import assert_foreseen, calls_of, stored


def markers(recorded: RecordedRequest) -> list[dict[str, Any]]:
    """Blocks of a request that carry a cache marker, in the order of the prompt."""
    body = recorded.request.body
    contents = [m["content"] for m in body["messages"] if isinstance(m["content"], list)]
    blocks = [*body.get("tools", ()), *body["system"], *(b for c in contents for b in c)]
    return [block for block in blocks if "cache_control" in block]


def parallel(count: int) -> Step:
    """Many commands in one answer."""
    return [call("bash", command=f"echo {number}") for number in range(count)]


def test_one_more_marker_finds_what_the_look_back_misses(pi: Pi) -> None:
    steps: list[Step] = [[call("bash", command="seq 2000")], parallel(25), "done"]
    plain = pi.serve(steps, plain=True)
    assert pi.print("go").code == 0
    ours = pi.serve(steps, plain=True)
    assert pi.print("go", foredeck=True).code == 0
    before, after = plain.requests[-1], ours.requests[-1]
    assert before.usage
    assert after.usage
    assert before.usage.read < before.usage.ideal, "25 calls and their results are 50 blocks"
    assert after.usage.read == after.usage.ideal
    assert len(markers(after)) == len(markers(before)) + 1 <= 4
    marked = markers(after)[-2]
    assert "2000" in str(marked["content"])
    assert marked["cache_control"] == markers(after)[-1]["cache_control"]


def test_the_prediction_is_what_the_provider_reports(pi: Pi) -> None:
    steps: list[Step] = [
        [call("bash", command=f"seq {start} {start + 400}")] for start in range(1000, 1009)
    ]
    model = pi.serve([*steps[:4], parallel(25), *steps[4:], "done"])
    assert pi.print("go", foredeck=True, environment=EAGER).code == 0
    assert all(len(markers(recorded)) <= 4 for recorded in model.requests)
    with stored(pi) as store:
        records = calls_of(store)
    assert len(records) == len(model.requests)
    assert sum(record.decision.is_rebase for record in records) >= 2
    for record, recorded in zip(records, model.requests, strict=True):
        assert_foreseen(record, recorded)
    reported = [record.cache.reported for record in records[1:]]
    assert [counts and counts.read for counts in reported] == [
        r.usage.read for r in model.requests[:-1]
    ]
