"""The counts of all rounds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from foredeck_bench.figures import quantile

MOST_EXAMPLES = 10


@dataclass(slots=True)
class Tally:
    """Counts over all rounds. Everything from `missing` to `unreached` must be 0."""

    rounds: int = 0
    through_pi: int = 0
    killed: Counter[str] = field(default_factory=Counter)
    """Rounds by victim and point."""
    acknowledged: int = 0
    """Calls that the engine has answered, or the provider has received."""
    missing: int = 0
    """Of those, calls that the store does not hold, or shows otherwise."""
    results: int = 0
    """Tool results that a host had."""
    lost_results: int = 0
    doubled: int = 0
    """Calls that were recorded twice, and tool results that became two objects."""
    half: int = 0
    """Records that lack something which was to be written with them."""
    prompts: int = 0
    """Prompts compared with those of a run that was never killed."""
    differing: int = 0
    refused_prompts: int = 0
    """Prompts that a provider would not have taken."""
    orphans: int = 0
    refused_starts: int = 0
    """Engines that did not start after a kill: a lock, or a store that could not be opened."""
    unreached: int = 0
    """Points that no process came to: the round has shown nothing."""
    recovery_s: list[float] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)

    @property
    def failures(self) -> int:
        """How many things went wrong."""
        return (
            self.missing
            + self.lost_results
            + self.doubled
            + self.half
            + self.differing
            + self.refused_prompts
            + self.orphans
            + self.refused_starts
            + self.unreached
        )

    def fault(self, name: str, text: str, count: int = 1) -> None:
        """Count something that must not happen, and keep an example for the report."""
        setattr(self, name, getattr(self, name) + count)
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(f"{name}: {text}")

    def to_json(self) -> dict[str, Any]:
        """As `foredeck bench crash --json` prints it; times in seconds."""
        times = self.recovery_s
        return {
            "rounds": self.rounds,
            "through_pi": self.through_pi,
            "killed": dict(sorted(self.killed.items())),
            "acknowledged": self.acknowledged,
            "missing": self.missing,
            "results": self.results,
            "lost_results": self.lost_results,
            "doubled": self.doubled,
            "half_transactions": self.half,
            "prompts": self.prompts,
            "differing_prompts": self.differing,
            "refused_prompts": self.refused_prompts,
            "orphans": self.orphans,
            "refused_starts": self.refused_starts,
            "unreached": self.unreached,
            "recovery_s": {
                "p50": round(quantile(times, 0.5), 3) if times else None,
                "p95": round(quantile(times, 0.95), 3) if times else None,
                "max": round(max(times), 3) if times else None,
            },
            "examples": self.examples,
            "ok": self.failures == 0,
        }
