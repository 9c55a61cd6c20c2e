"""The outcome of a run on the twin, with the bill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from foredeck_bench.twin.billing import ModelRecord
from foredeck_bench.twin.script import Violation
from foredeck_bench.twin.server import RecordedRequest, ScriptedModel


@dataclass(frozen=True, slots=True)
class TwinReport:
    """Sums over a run's requests.

    `refused` by rule, `threads` by their use, `dropped` blocks of reasoning, `reported` how often
    the provider said so.
    """

    requests: int
    refused: dict[str, int]
    threads: dict[str, int]
    dropped: int
    reported: int
    read: int
    written: int
    uncached: int
    output: int
    missed: int
    dollars: float | None

    @classmethod
    def of(cls, model: ScriptedModel) -> TwinReport:
        """The report of all requests that a server has answered so far."""
        return _report(model.requests, model.violations, model.record)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def text(self) -> str:
        """For people: the bill first."""
        prompt = self.read + self.written + self.uncached
        bill = "unknown price" if self.dollars is None else f"${self.dollars:.4f}"
        lines = [
            f"{bill} for {_count(self.requests, 'request')}",
            f"prompts {prompt:,} tokens: {self.read:,} read from the cache, "
            f"{self.written:,} written to it, {self.uncached:,} neither; {self.output:,} out",
            f"missed {self.missed:,} tokens that stood in an earlier prompt and were not found",
            f"dropped {_count(self.dropped, 'block')} of reasoning, reported "
            f"{_count(self.reported, 'time')}",
            f"refused {_counts(self.refused)}",
            f"threads {_counts(self.threads)}",
        ]
        return "\n".join(lines)


def _report(
    requests: Sequence[RecordedRequest], violations: Sequence[Violation], record: ModelRecord | None
) -> TwinReport:
    usages = [each.usage for each in requests if each.usage]
    dropped = [_identity(each, block) for each in requests for block in each.dropped]
    return TwinReport(
        requests=len(requests),
        refused=dict(Counter(violation.rule for violation in violations)),
        threads=dict(Counter(str(each.thread["type"]) for each in requests if each.thread)),
        dropped=len(set(dropped)),
        reported=len(dropped),
        read=sum(usage.read for usage in usages),
        written=sum(usage.written for usage in usages),
        uncached=sum(usage.uncached for usage in usages),
        output=sum(usage.output for usage in usages),
        missed=sum(max(0, usage.ideal - usage.read) for usage in usages),
        dollars=sum(record.dollars(usage) for usage in usages) if record else None,
    )


def _identity(recorded: RecordedRequest, block: dict[str, Any]) -> str:
    if "path" not in block:
        return str(block["id"])
    _, message, _, place = block["path"].split(".")
    thinking = recorded.request.messages[int(message)]["content"][int(place)]
    return str(thinking.get("signature") or thinking.get("data"))


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"
