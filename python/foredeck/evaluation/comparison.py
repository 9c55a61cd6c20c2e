"""The results of an evaluation side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from foredeck.evaluation.results import SIDES, RunResult


@dataclass(slots=True)
class SideSum:
    """What one side took for a task, or for all, in all rounds together."""

    runs: int = 0
    passed: int = 0
    timeouts: int = 0
    calls: int = 0
    tokens: int = 0
    output: int = 0
    cost: float = 0.0
    managed: int = 0
    asked: int = 0
    seconds: float = 0.0

    def add(self, result: RunResult) -> None:
        """One run."""
        self.runs += 1
        self.passed += result.outcome == "passed"
        self.timeouts += result.outcome == "timeout"
        self.calls += result.calls
        self.tokens += result.tokens
        self.output += result.output
        self.cost = round(self.cost + result.cost, 6)
        self.managed += result.managed
        self.asked += result.asked
        self.seconds = round(self.seconds + result.seconds, 1)

    @property
    def cost_per_pass(self) -> float | None:
        """Dollars for each run that passed; None where none has."""
        return round(self.cost / self.passed, 6) if self.passed else None


Comparison = dict[str, dict[str, SideSum]]
"""Sums by task and side."""


def paired(results: Sequence[RunResult]) -> list[RunResult]:
    """Those of rounds of a task that both sides have done."""
    done = Counter((result.key.task, result.key.round) for result in results)
    return [r for r in results if done[r.key.task, r.key.round] == len(SIDES)]


def compared(results: Iterable[RunResult]) -> Comparison:
    """By task, in the order of the results."""
    found: Comparison = {}
    for result in results:
        sides = found.setdefault(result.key.task, {side: SideSum() for side in SIDES})
        sides[result.key.side].add(result)
    return found


def summed(results: Sequence[RunResult]) -> dict[str, SideSum]:
    """Over all tasks, by side."""
    sums = {side: SideSum() for side in SIDES}
    for result in results:
        sums[result.key.side].add(result)
    return sums


def comparison_json(results: Sequence[RunResult]) -> dict[str, Any]:
    """For programs: sums by task and side, and over all tasks."""
    return {
        "tasks": {
            task: {side: _json(each) for side, each in sides.items()}
            for task, sides in compared(results).items()
        },
        "all": {side: _json(each) for side, each in summed(results).items()},
    }


def _json(sums: SideSum) -> dict[str, Any]:
    return {**asdict(sums), "cost_per_pass": sums.cost_per_pass}
