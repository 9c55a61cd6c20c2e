"""What a real model's cache held, beside what the engine had predicted, over several rebases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import assistant, calls, result, user
from context.real_model import RealModel, written_out
from context.sent import Sent
from foredeck.model.call_values import ReportedUsage

BOUNDARY_TOKENS = 10
"""Beyond the predicted prefix two messages may begin alike: with their role, and a result that
was folded with the first characters of what stood there."""

WORDS = "The ship of size {0} left port {0} at noon and came back to pier {0} before the storm. "


@pytest.fixture(scope="module")
def model() -> Iterator[RealModel]:
    """One model for the tests of this file."""
    started = RealModel.start()
    yield started
    started.server = None


def read(model: RealModel, host: Host) -> tuple[Sent, dict[str, Any]]:
    """One call that the model reads; gives the usage that its server reports, in Pi's terms."""
    sent = host.call()
    pieces = written_out([*host.system, *sent.prompt])
    cached, fresh = model.read(pieces)
    hit = sent.record.cache.hit
    assert hit is not None
    predicted = pieces[: len(host.system) + hit] if hit >= 0 else []
    beyond = cached - (model.count(predicted) if predicted else 0)
    assert 0 <= beyond <= BOUNDARY_TOKENS, (sent.call, sent.decision, hit)
    return sent, {"input": fresh, "cacheRead": cached, "cacheWrite": 0}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_predicted_prefix_is_what_the_model_had(new_host: NewHost, model: RealModel) -> None:
    eager = {"carrying_factor": 0, "guard": 10, "cache": "prefix"}
    host = new_host(policy="seed-window", seed_window={"per_turn": 2}, rebase=eager)
    host.add(user("Tell me of the ships."))
    sent, usage = read(model, host)
    records = [sent.record]
    usages = [usage]
    for number in range(6):
        asked = assistant(calls(f"c{number}", "bash", command=f"ship {number}"), usage=usage)
        host.add(asked, result(f"c{number}", "bash", WORDS.format(number * 111) * 4))
        sent, usage = read(model, host)
        records.append(sent.record)
        usages.append(usage)
    reasons = [record.decision.reason for record in records]
    assert reasons.count("pays") >= 3, reasons
    assert [record.cache.reported for record in records[1:]] == [
        ReportedUsage(call, told["cacheRead"], 0, told["input"])
        for call, told in enumerate(usages[:-1], 1)
    ]
