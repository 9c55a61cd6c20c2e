"""What a session would have cost with hindsight: nothing stays once nothing needs it any more.

What people and the model say stays. Results, calls and reasoning leave as whole messages, once the
last edit of a text in them has been made, and not before one call has seen them; for each
identifier that a later answer takes from a result a line stays until then. Leaving is free where
nothing is cached. In between, everything that is done with leaves at once, and what was cached
after the first of it is written again: a dynamic program over the calls finds at which ones that is
cheapest.

This is the cost of an agent that knows what it will need, not of one that knows even the lines: it
keeps whole messages, and pays twice for a text that comes twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from foredeck.accounting.shapes import blocks_of, is_sent
from foredeck.context.messages.shape import Message
from foredeck.context.rebase import Prices
from foredeck.histories.records import Transcript
from foredeck_bench.judging.judge import Rule, SessionFacts

NEVER = 1 << 30


@dataclass(frozen=True, slots=True)
class Stay:
    """Tokens in the prompts from call `came` on, and no more needed from call `gone` on."""

    tokens: float
    came: int
    gone: int


@dataclass(slots=True)
class _Course:
    """The cheapest way to a call, among those that were cleared last at the same call."""

    cost: float
    """Of all calls so far."""
    tokens: float
    """Of the newest prompt."""
    first: int
    """The first stay in that prompt which is no longer needed."""


def hindsight_cost(transcript: Transcript, facts: SessionFacts, rule: Rule) -> float:
    """Cost of all prompts of a session with an ideal cache, in tokens of uncached input."""
    stays = list(stays_of(transcript, facts))
    return cheapest(stays, cold_calls(transcript, rule), facts.calibration.head_tokens, rule.prices)


def head_cost(transcript: Transcript, facts: SessionFacts, rule: Rule) -> float:
    """What the system prompt and the tools cost in all prompts, which nothing here changes."""
    cold, prices = cold_calls(transcript, rule), rule.prices
    return facts.calibration.head_tokens * sum(prices.write if c else prices.read for c in cold)


def cold_calls(transcript: Transcript, rule: Rule) -> list[bool]:
    """Of each call whether nothing is cached at it."""
    return [True] + [
        call.name != before.name or call.time_ms - before.time_ms > rule.ttl_s * 1000
        for before, call in pairwise(transcript.calls)
    ]


def stays_of(transcript: Transcript, facts: SessionFacts) -> Iterator[Stay]:
    """What a session's prompts have to hold, in the order of its messages."""
    edited: dict[int, int] = {}
    named: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for call, needs in enumerate(facts.needs):
        edited |= {holder: call for _, holder in needs.edits if holder is not None}
        for name, holder in needs.names.items():
            named[holder][name] = call
    rate = facts.calibration.chars_per_token
    start = 0
    for came, recorded in enumerate(transcript.calls):
        for index in range(start, recorded.seen):
            message = transcript.messages[index].message
            if not is_sent(message):
                continue
            tokens, role = facts.tokens[index], message.get("role")
            said = _said(message) / rate if role == "assistant" else 0.0
            said = tokens if role not in ("assistant", "toolResult") else min(said, tokens)
            gone = max(edited.get(index, came), came) + 1
            yield Stay(said, came, NEVER)
            yield Stay(tokens - said, came, gone)
            for name, until in named[index].items():
                if until >= gone:
                    yield Stay((len(name) + 1) / rate, came, until + 1)
        start = recorded.seen


def _said(answer: Message) -> int:
    return sum(len(str(b.get("text") or "")) for b in blocks_of(answer) if b.get("type") == "text")


def cheapest(stays: Sequence[Stay], cold: Sequence[bool], head: float, prices: Prices) -> float:
    """The least that the calls can cost. `cold`: whether nothing is cached at a call; `head`:
    tokens before the messages."""
    new, first_gone = [0.0] * len(cold), [len(stays)] * (len(cold) + 1)
    for index in range(len(stays) - 1, -1, -1):
        stay = stays[index]
        new[stay.came] += stay.tokens
        first_gone[min(stay.gone, len(cold))] = index
    plans: list[_Course] = []
    for call, is_cold in enumerate(cold):
        kept = [s.tokens if s.came <= call < s.gone else 0.0 for s in stays]
        before = list(accumulate(kept, initial=head))
        needed = before[-1]
        sent = next((i for i, s in enumerate(stays) if s.came >= call), len(stays))
        least = min((plan.cost for plan in plans), default=0.0) + prices.write * needed
        for plan in plans if not is_cold else ():
            plan.first = min(plan.first, first_gone[call])
            read = before[min(plan.first, sent)]
            least = min(least, plan.cost + prices.read * read + prices.write * (needed - read))
            plan.cost += prices.read * plan.tokens + prices.write * new[call]
            plan.tokens += new[call]
        cleared = _Course(least, needed, len(stays))
        # A course that was cleared earlier holds more, so it is dropped unless it costs less.
        plans = [plan for plan in plans if not is_cold and plan.cost < least] + [cleared]
    return min((plan.cost for plan in plans), default=0.0)
