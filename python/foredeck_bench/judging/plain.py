"""What a user could have had without foredeck: plain Pi's prompts, by its own and simpler rules."""

from __future__ import annotations

from collections.abc import Iterator

from foredeck.accounting.cache import blocks_of, chars_of, is_sent
from foredeck.context.messages.shape import Message
from foredeck.model.call_values import CHARS_PER_TOKEN
from foredeck.sources.tool_calls import path_argument
from foredeck_agents.histories.records import Compaction, Transcript
from foredeck_bench.judging.judge import Judge, Judgement, Rule, SessionFacts
from foredeck_lab.replay.pi import plain_prompts

PLAIN = "plain Pi"
WITHOUT = "plain Pi, no compaction"
LOWER = "plain Pi, compacting at 100k"
ON_DEMAND = "the API's compaction at 100k"
MASKED = "the newest 10 results, others masked"

SIMPLE = (PLAIN, LOWER, MASKED)
"""Those that ask for nothing else, without charge for Pi's summaries."""

LOWER_TOKENS = 100_000
KEPT_TOKENS = 20_000
"""Newest chat that Pi keeps at a compaction."""

SUMMARY_TOKENS = 1_500
"""Of a summary that was not recorded."""

NEWEST = 10
"""Results that are not masked."""

MASK = "[an old result that is not shown any more]"


def judged_plain(
    transcript: Transcript, facts: SessionFacts, rule: Rule
) -> Iterator[tuple[str, Judgement]]:
    """Each of these rows, judged."""
    rate = facts.calibration
    lower = compactions_at(transcript, LOWER_TOKENS - rate.head_tokens, rate.chars_per_token)
    for row, prompts in (
        (PLAIN, plain_prompts(transcript, transcript.compactions)),
        (WITHOUT, plain_prompts(transcript, [])),
        (LOWER, plain_prompts(transcript, lower)),
        (ON_DEMAND, plain_prompts(transcript, lower)),
        (MASKED, masked_prompts(transcript)),
    ):
        judge = Judge(facts, rule, keeps_behind=row == ON_DEMAND)
        summed_up = {each.seen for each in lower} if row == ON_DEMAND else ()
        for call, prompt in zip(transcript.calls, prompts, strict=True):
            judge.wait(transcript, call)
            if call.seen in summed_up:
                judge.sum_up(SUMMARY_TOKENS)
            judge.see(call, prompt)
        yield row, judge.judgement


def masked_prompts(transcript: Transcript) -> Iterator[list[Message]]:
    """Each call's prompt with all but the newest results masked."""
    messages = [recorded.message for recorded in transcript.messages]
    results = [i for i, message in enumerate(messages) if message.get("role") == "toolResult"]
    prompt: list[Message] = []
    for call in transcript.calls:
        prompt += messages[len(prompt) : call.seen]
        result_count = sum(index < call.seen for index in results)
        for index in results[: max(0, result_count - NEWEST)]:
            if chars_of(messages[index]) > len(MASK):
                prompt[index] = {**messages[index], "content": [{"type": "text", "text": MASK}]}
        yield list(prompt)


def compactions_at(
    transcript: Transcript, tokens: float, chars_per_token: float = CHARS_PER_TOKEN
) -> list[Compaction]:
    """Where Pi would compact at this many tokens, with blank summaries."""
    messages = [recorded.message for recorded in transcript.messages]
    sizes = [chars_of(m) / chars_per_token if is_sent(m) else 0.0 for m in messages]
    compactions: list[Compaction] = []
    start, summary = 0, 0
    for call in transcript.calls:
        if summary + sum(sizes[start : call.seen]) <= tokens:
            continue
        kept_from = _kept_from(messages, sizes, start, call.seen)
        if kept_from <= start:
            continue
        summary_text = _blank_summary(messages[:kept_from], chars_per_token)
        compactions.append(Compaction(call.seen, kept_from, summary_text))
        start, summary = kept_from, SUMMARY_TOKENS
    return compactions


def _kept_from(messages: list[Message], sizes: list[float], start: int, end: int) -> int:
    """The first message kept, never a result without its call."""
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
