"""What fills the window: `/context`, for the user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from foredeck.context.messages.conversation import Conversation
from foredeck.context.messages.items import blocks_chars
from foredeck.context.messages.parts import Part
from foredeck.context.state.session import Session
from foredeck.context.status import short, tokens_of
from foredeck.context.tools.listing import object_name
from foredeck.model.call_values import CallStats

LARGEST = 8
LEAST_TOKENS = 200
LINE_CHARS = 160
"""About what a folded result leaves behind, a short digest included."""
_LINES = frozenset({"reference", "same", "note"})

_LABELS = {
    "system": "system prompt and tools",
    "ours": "added by foredeck",
    "chat": "chat",
    "results": "results in full",
    "folded": "folded to lines",
}


def describe_window(session: Session) -> str:
    """The newest prompt by kind, with its largest objects and what stands before the chat."""
    record = session.branch_record
    if record is None or record.is_host:
        return "No call has gone out with foredeck on this branch yet."
    stats = record.stats
    total = tokens_of(stats, stats.chars_sent)
    about = "" if stats.reports else "about "
    window = record.model.window
    share = f", {100 * total // window}% of the window" if window else ""
    lines = [
        f"Call {record.ordinal}: {about}{short(total)} tokens{share}; the host alone would send "
        f"{short(tokens_of(stats, stats.chars_host))}."
    ]
    lines += _kinds(session, stats)
    lines += _largest(session, stats)
    lines += _before_the_chat(session)
    return "\n".join(lines)


def _kinds(session: Session, stats: CallStats) -> Iterator[str]:
    chars = _chars_by_kind(session)
    chars["system"] = max(0, stats.chars_sent - chars.total())
    for kind, label in _LABELS.items():
        if chars[kind]:
            share = 100 * chars[kind] / max(1, stats.chars_sent)
            yield f"  {label:<24} {short(_tokens(stats, chars[kind])):>6}  {share:3.0f}%"


def _chars_by_kind(session: Session) -> Counter[str]:
    branch = session.branch
    chars: Counter[str] = Counter()
    for index, part in _sent(session):
        chars[_kind(branch.conversation, index, part)] += part.chars
    chars["ours"] += sum(blocks_chars(say.blocks) for say in branch.edits.messages)
    return chars


def _sent(session: Session) -> Iterator[tuple[int, Part]]:
    """The host's messages that go out."""
    branch = session.branch
    for index, part in enumerate(branch.conversation.parts):
        if index not in branch.edits.drops:
            yield index, part


def _kind(conversation: Conversation, index: int, part: Part) -> str:
    if part.form in _LINES:
        return "folded"
    return "results" if conversation.items[index].kind == "result" else "chat"


def _largest(session: Session, stats: CallStats) -> Iterator[str]:
    """The objects whose content takes most room, each with what folding it would save."""
    chars: Counter[int] = Counter()
    for _, part in _sent(session):
        if part.subject is not None and part.shows:
            chars[part.subject] += part.chars
    large = [(n, c) for n, c in chars.most_common(LARGEST) if _tokens(stats, c) >= LEAST_TOKENS]
    if large:
        yield "Largest in view, and what a call would save without:"
    for ordinal, count in large:
        saved = short(_tokens(stats, max(0, count - LINE_CHARS)))
        state = session.branch.sets.innermost(ordinal)
        yield f"  @{ordinal:<4} {saved:>6}  {state:<9} {object_name(session, ordinal)}"


def _before_the_chat(session: Session) -> Iterator[str]:
    """The head, as the model reads it: memories, tasks, notes."""
    head = session.branch.edits.head
    if head is not None:
        yield "Before the chat:"
        for block in head.blocks:
            yield from (f"  {line}" for line in str(block.get("text") or "").splitlines())


def _tokens(stats: CallStats, chars: int) -> int:
    return int(chars / stats.rate) if stats.rate else 0
