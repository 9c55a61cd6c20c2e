"""A host that picks a model for each request: which one has answered is known only afterwards."""

from __future__ import annotations

from typing import Any

from context.driver import MODEL, Host
from context.messages import assistant, calls, result
from context.scenes import ask
from context.test_account import account

PRICES = {
    "m1": {"input": 3.0, "output": 15.0, "cacheRead": 0.3, "cacheWrite": 3.75},
    "m2": {"input": 1.0, "output": 5.0, "cacheRead": 0.5, "cacheWrite": 1.0},
}


def answered(host: Host, number: int, model: str) -> None:
    """This model has answered; the host knows nothing newer at the next call."""
    usage = {"input": 4000, "cacheRead": 0, "cacheWrite": 0}
    answer = assistant(calls(f"c{number}", "bash"), model=model, usage=usage)
    host.add(answer, result(f"c{number}", "bash", f"output {number}"))
    host.model = {**MODEL, "id": model, "cost": PRICES[model]}
    host.call()


def spent(host: Host) -> dict[str, tuple[int, float]]:
    """By model, its calls and what its prompts have cost."""
    record = host.state.chat.newest_record
    return {row.model: (row.calls, row.ours) for row in record.spent}


def test_a_call_is_charged_to_the_model_that_has_answered_it(host: Host) -> None:
    host.model = None
    ask(host)
    assert spent(host).keys() == {""}
    for number, model in enumerate(["m1", "m1", "m2", "m2"]):
        answered(host, number, model)
    assert {name: count for name, (count, _) in spent(host).items()} == {
        "anthropic/m1": 2,
        "anthropic/m2": 3,
    }
    told = account(host)
    assert [line.model[-2:] for line in told.lines] == ["m1", "m1", "m2", "m2", "m2"]
    assert [line.price for line in told.lines] == [3.0, 3.0, 1.0, 1.0, 1.0]
    ours = sum(cost for _, cost in spent(host).values())
    assert round(ours) == round(sum(line.ours.cost for line in told.lines))


def test_no_call_is_taken_for_a_switch_whose_model_has_just_answered(host: Host) -> None:
    host.model = None
    ask(host)
    for number, model in enumerate(["m1", "m2", "m2"]):
        answered(host, number, model)
    records: list[Any] = [*host.state.chat.log.records.values()]
    assert [record.decision.reason for record in records] == [None] * 4
    # A model that the user has chosen is one.
    host.model = {**MODEL, "id": "m1", "cost": PRICES["m1"]}
    host.add(assistant("Yes.", model="m2"))
    ask(host)
    newest = host.state.chat.newest_record
    assert newest.cache.read == 0
