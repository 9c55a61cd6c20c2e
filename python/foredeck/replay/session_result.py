"""The figures of a replayed session, and their sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.context.messages.items import blocks_chars
from foredeck.hosts.pi.transcripts import Message
from foredeck.hosts.pi.validity import find_faults
from foredeck.model.call_values import Decision
from foredeck.model.calls import CallRecord


@dataclass(slots=True)
class SessionResult:
    """What came of one recorded session. Characters are summed over all calls."""

    file: str
    calls: int = 0
    tool_calls: int = 0
    invalid_prompts: int = 0
    error: str | None = None
    chars_plain: int = 0
    chars_foredeck: int = 0
    peak_plain: int = 0
    peak_foredeck: int = 0
    rebases: int = 0
    """Calls at which bytes that had been sent were rewritten."""
    decisions: dict[str, int] = field(default_factory=dict)
    """How many calls were appended to (`append`), and how many were a rebase for each reason."""
    collapsed: int = 0
    """Messages that are a reference line at the last call."""
    objects: int = 0
    """Objects in the session's index at the last call."""
    skipped_lines: int = 0
    """Lines of the file that are not JSON: a file that was cut off has one."""

    def add_call(self, plain: Iterable[Message], prompt: Sequence[Message]) -> None:
        """Count a call: what the host alone would have sent, and what foredeck sends."""
        plain_chars, our_chars = sum(map(_chars, plain)), sum(map(_chars, prompt))
        self.calls += 1
        self.invalid_prompts += bool(find_faults(prompt))
        self.chars_plain += plain_chars
        self.chars_foredeck += our_chars
        self.peak_plain = max(self.peak_plain, plain_chars)
        self.peak_foredeck = max(self.peak_foredeck, our_chars)

    def add_records(self, records: Sequence[CallRecord]) -> None:
        """Count the decisions of the call records, oldest first; the last one's state counts."""
        reasons = Counter(_reason(record.decision) for record in records)
        self.decisions = dict(sorted(reasons.items()))
        self.rebases = sum(record.decision.is_rebase for record in records)
        if records:
            stats = records[-1].stats
            self.collapsed, self.objects = stats.folded, stats.objects


def total_of(sessions: Sequence[SessionResult]) -> dict[str, Any]:
    """The sums over all sessions, as `foredeck replay --json` prints them."""
    names = ("calls", "tool_calls", "invalid_prompts", "chars_plain", "chars_foredeck", "rebases")
    total: dict[str, Any] = {name: sum(getattr(s, name) for s in sessions) for name in names}
    decisions: Counter[str] = Counter()
    for session in sessions:
        decisions.update(session.decisions)
    total["decisions"] = dict(sorted(decisions.items()))
    total["sessions"] = len(sessions)
    total["errors"] = sum(1 for s in sessions if s.error)
    return total


def _reason(decision: Decision) -> str:
    return str(decision.reason) if decision.is_rebase else decision.kind


def _chars(message: Message) -> int:
    content = message.get("content")
    if isinstance(content, str):
        return len(content)
    if isinstance(content, list):
        return blocks_chars(block for block in content if isinstance(block, dict))
    texts = (message.get(name) for name in ("command", "output", "summary"))
    return sum(len(text) for text in texts if isinstance(text, str))
