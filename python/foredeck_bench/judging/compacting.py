"""Where Pi would have compacted, had its window been smaller."""

from __future__ import annotations

from foredeck.accounting.shapes import blocks_of, chars_of, is_sent
from foredeck.context.messages.shape import Message
from foredeck.histories.records import Compaction, Transcript
from foredeck.model.call_values import CHARS_PER_TOKEN
from foredeck.sources.tool_calls import path_argument

KEPT_TOKENS = 20_000
"""How much of the newest chat Pi keeps at a compaction."""

SUMMARY_TOKENS = 1_500
"""Assumed length of a summary where none was recorded; recorded ones have about that."""


def compactions_at(
    transcript: Transcript, tokens: float, chars_per_token: float = CHARS_PER_TOKEN
) -> list[Compaction]:
    """Where Pi would compact if told to at this many tokens. No model runs: the summary is blank,
    but for the paths of files read and changed, which Pi itself adds."""
    messages = [recorded.message for recorded in transcript.messages]
    sizes = [chars_of(m) / chars_per_token if is_sent(m) else 0.0 for m in messages]
    found: list[Compaction] = []
    start, summary = 0, 0
    for call in transcript.calls:
        if summary + sum(sizes[start : call.seen]) <= tokens:
            continue
        kept = _kept_from(messages, sizes, start, call.seen)
        if kept <= start:
            continue
        summary_text = _blank_summary(messages[:kept], chars_per_token)
        found.append(Compaction(call.seen, kept, summary_text))
        start, summary = kept, SUMMARY_TOKENS
    return found


def _kept_from(messages: list[Message], sizes: list[float], start: int, end: int) -> int:
    """The first message kept: as much as `KEPT_TOKENS`, and never a result without its call."""
    index, tokens = end, 0.0
    while index > start and tokens < KEPT_TOKENS:
        index -= 1
        tokens += sizes[index]
    while index > start and messages[index].get("role") == "toolResult":
        index -= 1
    return index


def _blank_summary(messages: list[Message], chars_per_token: float) -> str:
    paths = {
        path
        for message in messages
        if message.get("role") == "assistant"
        for block in blocks_of(message)
        if block.get("type") == "toolCall" and block.get("name") in ("read", "edit", "write")
        if isinstance(block.get("arguments"), dict) and (path := path_argument(block["arguments"]))
    }
    listed = "\n".join(sorted(paths))
    return listed + " " * max(0, int(SUMMARY_TOKENS * chars_per_token) - len(listed))
