"""What Anthropic's cache, simulated on Pi's own requests, holds; beside what was predicted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from foredeck.accounting.account import AccountingMethod
from foredeck.accounting.bookkeeping import account_of
from foredeck.accounting.stored import StoredCalls
from foredeck_bench.scripted import ModelRequest, PromptCache, RecordedRequest, Usage, call
from foredeck_bench.twin.steps import Step
from foredeck_lab.cost_command import cost_text
from harness import Pi
from observed import calls_of, session_of, stored

EAGER = {
    "FOREDECK_POLICY": "seed-window",
    "FOREDECK_SEED_WINDOW__PER_TURN": "3",
    "FOREDECK_REBASE__CARRYING_FACTOR": "0",
    "FOREDECK_REBASE__GAP": "0",
    "FOREDECK_REBASE__GUARD": "10",
}
"""So that a short session has several rebases."""


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
    assert ours.violations == plain.violations == []
    before, after = plain.requests[-1], ours.requests[-1]
    assert before.usage
    assert after.usage
    assert before.usage.read < before.usage.ideal, "25 calls and their results are 50 blocks"
    assert after.usage.read == after.usage.ideal
    assert len(markers(after)) == len(markers(before)) + 1 <= 4
    marked = markers(after)[-2]
    assert "2000" in str(marked["content"])
    assert marked["cache_control"] == markers(after)[-1]["cache_control"]


def test_other_requests_stay_as_they_are(pi: Pi) -> None:
    steps: list[Step] = [[call("bash", command="seq 2000")], parallel(25), "done"]
    model = pi.serve(steps, api="openai-completions")
    assert pi.print("go", foredeck=True).code == 0
    assert not any("cache_control" in str(r.request.body) for r in model.requests)


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
        expected, usage = record.cache, recorded.usage
        assert usage is not None
        assert expected.read is not None
        assert expected.written is not None
        assert expected.fresh is not None
        predicted = expected.read / (expected.read + expected.written + expected.fresh)
        assert predicted == pytest.approx(usage.read / usage.prompt, abs=0.05)
    reported = [record.cache.reported for record in records[1:]]
    assert [counts and counts.read for counts in reported] == [
        r.usage.read for r in model.requests[:-1]
    ]


class ReportsHalf(PromptCache):
    """A provider that tells of half of what it has read from its cache."""

    def serve(self, request: ModelRequest, output_tokens: int, now_s: float) -> Usage:
        usage = super().serve(request, output_tokens, now_s)
        untold = usage.read // 2
        return replace(usage, read=usage.read - untold, uncached=usage.uncached + untold)


def test_what_a_provider_reports_less_is_shown(pi: Pi) -> None:
    steps: list[Step] = [[call("bash", command=f"seq {start} {start + 999}")] for start in range(4)]
    model = pi.serve([*steps, "done"], cache=ReportsHalf())
    assert pi.print("go", foredeck=True).code == 0
    with stored(pi) as store:
        account = account_of(StoredCalls(store, session_of(store)), AccountingMethod())
    assert account.compared == len(account.lines) == len(model.requests) == 5
    rows = {name: reported / predicted for name, predicted, reported in account.comparison()}
    assert rows["prompts"] == pytest.approx(1, abs=0.4), "an estimate"
    assert rows["read from the cache"] == pytest.approx(0.5 * rows["prompts"], abs=0.15)
    assert set(account.lost) == {"unexplained"}
    told = cost_text("s", account)
    assert "What is unexplained is a defect of foredeck, the provider's doing, or that" in told
    assert "read from the cache: predicted" in told
