"""What a session would have cost with hindsight: nothing stays once nothing needs it.

A dynamic program finds the cheapest calls to clear at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from foredeck.accounting.cache import blocks_of, is_sent
from foredeck.context.messages.shape import Message
from foredeck.context.rebase import Prices
from foredeck_agents.histories.records import Transcript
from foredeck_bench.judging.judge import Rule, SessionFacts

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
