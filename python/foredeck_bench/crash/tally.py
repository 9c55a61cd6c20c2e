"""The counts of a row's rounds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from foredeck_bench.figures import quantile

MOST_EXAMPLES = 10


@dataclass(slots=True)
class Tally:
    """What was done in a row's rounds, and what went wrong."""

    rounds: int = 0
    killed: Counter[str] = field(default_factory=Counter)
    """Rounds by what was done to whom, and where."""
    compared: Counter[str] = field(default_factory=Counter)
    """By kind: prompts, tool results, calls that were acknowledged, races."""
    faults: Counter[str] = field(default_factory=Counter)
    """By kind: missing, doubled, half, differing, orphans and the like."""
    recovery_s: list[float] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)

    def fault(self, name: str, text: str, count: int = 1) -> None:
        """Count something that must not happen, and keep an example for the report."""
        self.faults[name] += count
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(f"{name}: {text}")

    def to_json(self) -> dict[str, Any]:
        """As `foredeck bench crash --json` prints it; times in seconds."""
        times = self.recovery_s
        return {
            "rounds": self.rounds,
            "killed": dict(sorted(self.killed.items())),
            "compared": dict(sorted(self.compared.items())),
            "faults": dict(sorted(self.faults.items())),
            "recovery_s": [round(quantile(times, q), 2) for q in (0.5, 0.95)] if times else [],
            "examples": self.examples,
            "ok": not self.faults,
        }
