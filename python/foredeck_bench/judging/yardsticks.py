"""What sessions are compared with: plain Pi by its own and simpler rules, and hindsight."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from foredeck.accounting.cache import blocks_of, chars_of, is_sent
from foredeck.context.messages.shape import Message
from foredeck.context.rebase import Prices
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


# With hindsight nothing stays once nothing needs it: a dynamic program finds the cheapest calls to
# clear at.

NEVER = 1 << 30


@dataclass(frozen=True, slots=True)
class Stay:
    """Tokens in the prompts from call `came` to call `gone`."""

    tokens: float
    came: int
    gone: int


@dataclass(slots=True)
class _Course:
    """The cheapest way to a call, among those last cleared at the same one."""

    cost: float
    """Of all calls so far."""
    tokens: float
    """Of the newest prompt."""
    first: int
    """The first stay that the prompt does not need."""


def hindsight_cost(transcript: Transcript, facts: SessionFacts, rule: Rule) -> float:
    stays = list(stays_of(transcript, facts))
    return cheapest(stays, cold_calls(transcript, rule), facts.calibration.head_tokens, rule.prices)


def head_cost(transcript: Transcript, facts: SessionFacts, rule: Rule) -> float:
    """Cost of system prompt and tools in all prompts."""
    cold, prices = cold_calls(transcript, rule), rule.prices
    return facts.calibration.head_tokens * sum(prices.write if c else prices.read for c in cold)


def cold_calls(transcript: Transcript, rule: Rule) -> list[bool]:
    """Of each call whether nothing is cached at it."""
    return [True] + [
        call.name != before.name or call.time_ms - before.time_ms > rule.ttl_s * 1000
        for before, call in pairwise(transcript.calls)
    ]


def stays_of(transcript: Transcript, facts: SessionFacts) -> Iterator[Stay]:
    edited: dict[int, int] = {}
    uses: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for call, needs in enumerate(facts.needs):
        edited |= {holder: call for _, holder in needs.edits if holder is not None}
        for name, holder in needs.names.items():
            uses[holder][name] = call
    rate = facts.calibration.chars_per_token
    start = 0
    for came, recorded in enumerate(transcript.calls):
        for index in range(start, recorded.seen):
            message = transcript.messages[index].message
            if not is_sent(message):
                continue
            tokens, role = facts.tokens[index], message.get("role")
            own_tokens = _said(message) / rate if role == "assistant" else 0.0
            own_tokens = (
                tokens if role not in ("assistant", "toolResult") else min(own_tokens, tokens)
            )
            gone = max(edited.get(index, came), came) + 1
            yield Stay(own_tokens, came, NEVER)
            yield Stay(tokens - own_tokens, came, gone)
            for name, until in uses[index].items():
                if until >= gone:
                    yield Stay((len(name) + 1) / rate, came, until + 1)
        start = recorded.seen


def _said(answer: Message) -> int:
    return sum(len(str(b.get("text") or "")) for b in blocks_of(answer) if b.get("type") == "text")


def cheapest(stays: Sequence[Stay], cold: Sequence[bool], head: float, prices: Prices) -> float:
    """The least that the calls can cost; `head`: tokens before the messages."""
    new, first_gone = [0.0] * len(cold), [len(stays)] * (len(cold) + 1)
    for index in range(len(stays) - 1, -1, -1):
        stay = stays[index]
        new[stay.came] += stay.tokens
        first_gone[min(stay.gone, len(cold))] = index
    plans: list[_Course] = []
    for call, is_cold in enumerate(cold):
        sizes = [s.tokens if s.came <= call < s.gone else 0.0 for s in stays]
        before = list(accumulate(sizes, initial=head))
        needed = before[-1]
        first_later = next((i for i, s in enumerate(stays) if s.came >= call), len(stays))
        least = min((plan.cost for plan in plans), default=0.0) + prices.write * needed
        for plan in plans if not is_cold else ():
            plan.first = min(plan.first, first_gone[call])
            read = before[min(plan.first, first_later)]
            least = min(least, plan.cost + prices.read * read + prices.write * (needed - read))
            plan.cost += prices.read * plan.tokens + prices.write * new[call]
            plan.tokens += new[call]
        cleared = _Course(least, needed, len(stays))
        # A course that was cleared earlier holds more, so it is dropped unless it costs less.
        plans = [plan for plan in plans if not is_cold and plan.cost < least] + [cleared]
    return min((plan.cost for plan in plans), default=0.0)
