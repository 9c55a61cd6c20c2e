"""What fills the window: `/context`, for the user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from foredeck.context.messages.items import blocks_chars
from foredeck.context.plan.ops import Op
from foredeck.context.plan.plan import Plan
from foredeck.context.state.chat import Branch, Chat
from foredeck.context.status import short, tokens_of
from foredeck.context.tools.listing import FOLDED, IN_VIEW

_LINES = frozenset({"reference", "same", "note"})

_LABELS = {
    "system": "system and tools",
    "ours": "foredeck",
    "chat": "chat",
    "results": IN_VIEW,
    "folded": FOLDED,
}
FREE = "free"


@dataclass(frozen=True, slots=True)
class Filling:
    """What fills the window at the newest call."""

    verdict: str
    shares: list[tuple[str, int]] = field(default_factory=list)
    """What a kind takes, in tokens; with what is free, where the window's size is known."""
    rate: float = 0.0
    """Characters in a token."""
    host_tokens: int = 0
    """What the host alone would send."""

    def tokens(self, chars: int) -> int:
        """As many tokens as characters make."""
        return int(chars / self.rate) if self.rate else 0

    def to_text(self) -> str:
        """The kinds that there are in one line, with their tokens."""
        kinds = [(label, tokens) for label, tokens in self.shares if label != FREE]
        return ", ".join(f"{label} {short(tokens)}" for label, tokens in kinds)


def filling(chat: Chat) -> Filling:
    """The newest prompt by kind."""
    record = chat.branch_record
    if record is None or record.is_host:
        return Filling("No call has gone out with foredeck on this branch yet.")
    stats = record.stats
    total = tokens_of(stats, stats.chars_sent)
    window = record.model.window
    about = "" if stats.reports else "about "
    verdict = f"The prompt has {about}{short(total)} tokens"
    if window:
        full = f"{about}{100 * total // window}% full"
        verdict = f"The window is {full}: {short(total)} of {short(window)} tokens"
    found = Filling(f"{verdict}.", [], stats.rate, tokens_of(stats, stats.chars_host))
    chars = _chars_by_kind(chat.branch)
    chars["system"] = max(0, stats.chars_sent - chars.total())
    for kind, label in _LABELS.items():
        if chars[kind]:
            found.shares.append((label, found.tokens(chars[kind])))
    if window and total < window:
        found.shares.append((FREE, window - total))
    return found


def before_the_chat(branch: Branch) -> str:
    """The head, as the model reads it: memories, tasks, notes."""
    head = branch.plan.head
    blocks = [] if head is None else head.blocks
    return "\n".join(str(block.get("text") or "") for block in blocks)


def _chars_by_kind(branch: Branch) -> Counter[str]:
    plan = branch.plan
    chars: Counter[str] = Counter()
    for index, op in _sent(branch):
        chars[_kind(plan, index, op)] += plan.chars[index]
    chars["ours"] += sum(blocks_chars(say.blocks) for say in plan.our_messages)
    return chars


def _sent(branch: Branch) -> Iterator[tuple[int, Op]]:
    """The host's messages that go out."""
    plan = branch.plan
    return ((index, op) for index, op in enumerate(plan.ops) if not plan.is_omitted(index))


def _kind(plan: Plan, index: int, op: Op) -> str:
    if op.form in _LINES:
        return "folded"
    return "results" if plan.items[index].kind == "result" else "chat"
