"""What the provider's cache may still hold of a branch, by the provider's rule. Pure.

With `prefix` every byte that was sent is found again up to the first one that differs. With
`markers` (Anthropic's rule) an entry exists only where a marker was in an earlier request: at
the end of the list then sent, or before its first message. It is found from a marker of the new
request that is on it or less than `LOOKBACK_BLOCKS` content blocks after it, and lives on
from its last use. With `none` nothing is kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from foredeck.context.plan.plan import Plan
from foredeck.model.calls import CallRecord

CacheRule = Literal["prefix", "markers", "none"]

LOOKBACK_BLOCKS = 20
"""Positions at which Anthropic looks for an entry, counted back from a marker, itself included."""

MINIMUM_TOKENS = 1024
"""A shorter prompt is not kept."""

HEAD = 0
"""The prefix without any message: system prompt and tools."""

NOTHING = -1
"""No prefix at all."""

_WIRE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""A tool call id that Pi's Anthropic adapter sends as it is."""

_MARKED_WIRES = frozenset({"anthropic-messages", "bedrock-converse-stream"})


def rule_of(api: str, provider: str, model: str) -> CacheRule:
    """By which rule the provider behind a model record keeps prompts."""
    routed = provider == "openrouter" and model.startswith("anthropic/")
    return "markers" if api in _MARKED_WIRES or routed else "prefix"


@dataclass(slots=True)
class CacheEntries:
    """Ends of earlier requests of a branch: a number of messages, and when that prefix was last
    used, in milliseconds since 1970. Replayed from call records, never computed again."""

    used: dict[int, int] = field(default_factory=dict)
    touched: tuple[int, ...] = ()
    """What the newest request used."""

    def cut(self, length: int) -> None:
        """Of the messages from `length` on nothing is as it was."""
        # An end at `length` itself stays: it names the messages before it.
        if max(self.used, default=0) > length:
            self.used = {end: at for end, at in self.used.items() if end <= length}

    def warm(self, time_ms: int) -> None:
        """The newest request was sent once more by the host, to keep its prefix alive."""
        for end in self.touched:
            if end in self.used:
                self.used[end] = max(time_ms, self.used[end])

    def apply(self, record: CallRecord) -> None:
        """Go on by one call."""
        cache, kept, end, now = record.cache, record.shared, record.length, record.time_ms
        self.warm(cache.warmed_ms)
        if cache.hit == NOTHING:
            self.used.clear()
        rendered = record.first_rendered
        # From the first message on that is another, is rendered anew or stands beside another of
        # ours, the provider was sent other bytes.
        self.cut(min(kept, record.changed_from, kept if rendered is None else rendered))
        touched = {end, cache.hit, cache.marked}
        self.touched = tuple(n for n in touched if n and n > HEAD)
        if max(self.used.values(), default=0) > now:
            # The clock was set back: nothing can have been used later than now.
            self.used = {number: min(at, now) for number, at in self.used.items()}
        for number in self.touched:
            if number == end or number in self.used:
                self.used[number] = now

    def alive(self, now_ms: int, ttl_s: float) -> list[int]:
        """Those that have not expired, shortest first."""
        return sorted(end for end, at in self.used.items() if now_ms - at <= ttl_s * 1000)


@dataclass(frozen=True, slots=True)
class CacheReach:
    """Which prefixes of the prompt under way would be found."""

    rule: CacheRule
    start: int
    """Messages that were sent before, 0 where the cache holds nothing of them."""
    warm: bool
    ends: tuple[int, ...] = ()
    """Ends of earlier requests that are alive, shortest first; for `markers`."""
    nearest: int = 0
    """Ends from here on are found from the marker on the last message."""
    markable: frozenset[int] = frozenset()
    """Ends on which one more marker can be set."""
    threads: bool = False
    """Whether the host sends only what is new. One more marker has it send all, so that is worth it
    only where something is found by it, or where all is sent anyway."""

    def hit(self, changed_from: int) -> int:
        """How many messages of the longest prefix found, if those from `changed_from` on differ."""
        if self.rule == "none" or not self.warm:
            return NOTHING
        if self.rule == "prefix":
            return min(self.start, changed_from)
        # Ends further back than a marker looks are found only if a marker is set on them.
        found = (e for e in self.ends if e >= self.nearest or e in self.markable)
        return max((e for e in found if e <= changed_from), default=HEAD)

    def mark(self, hit: int, first_to_go: int | None, *, rebased: bool) -> int | None:
        """Where one more marker pays, as an end of an earlier request: None for nowhere.

        On the prefix that would not be found without it; at a rebase on the prefix that stays;
        else on the newest one that is not about to change, so that it is alive when it must be.
        """
        if hit in self.markable and (hit < self.nearest or rebased):
            return hit
        if first_to_go is None or (self.threads and not rebased):
            return None
        return max((e for e in self.markable if e <= min(first_to_go, hit)), default=None)


def reach_of(
    rule: CacheRule,
    plan: Plan,
    entries: list[int],
    *,
    start: int,
    warm: bool,
    marks: bool,
    threads: bool = False,
) -> CacheReach:
    """What would be found of a conversation; `entries`: ends of earlier requests that are alive.

    `marks`: whether one more marker can be set; `threads`: as in `CacheReach`.
    """
    if rule != "markers" or not warm:
        return CacheReach(rule, start, warm)
    ends = tuple(end for end in entries if end <= start)
    can = frozenset(end for end in ends if _ends_in_result(plan, end)) if marks else ()
    return CacheReach(rule, start, warm, ends, _nearest(plan), frozenset(can), threads)


def _ends_in_result(plan: Plan, end: int) -> bool:
    # The shim finds the block to mark by the id of its call, so it has to go out unchanged.
    item = plan.items[end - 1]
    if item.kind != "result" or plan.is_omitted(end - 1):
        return False
    return _WIRE_ID.fullmatch(item.call_id) is not None


def _nearest(plan: Plan) -> int:
    """The shortest prefix that is found from a marker on the last message."""
    # Anthropic looks back from a marker over a limited number of content blocks.
    length = len(plan)
    if not length or plan.items[-1].kind == "assistant":
        return length + 1
    blocks, index = 0, length
    while index > 0:
        blocks += sent_blocks(plan, index - 1)
        if blocks >= LOOKBACK_BLOCKS:
            break
        index -= 1
    return index


def sent_blocks(plan: Plan, index: int) -> int:
    """Content blocks that a message makes in a request; a tool result is one, images and all."""
    item, op = plan.items[index], plan.ops[index]
    if item.unsent or item.kind == "opaque" or plan.is_omitted(index):
        return 0
    if item.kind == "result":
        return 1
    blocks = item.blocks if op.blocks is None else op.blocks
    return len([b for b in blocks if b.get("type") != "text" or str(b.get("text") or "").strip()])
