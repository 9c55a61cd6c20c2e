"""What the provider's cache may hold of a branch. Pure.

`prefix`: everything up to the first changed byte. `markers` (Anthropic): what ended at a marker,
found within `LOOKBACK_BLOCKS` blocks. `breakpoints` (OpenAI, since GPT-5.6): ends of earlier
requests among the newest `BREAKPOINTS` user or tool messages.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Literal

from foredeck.context.plan.plan import Plan
from foredeck.model.calls import CallRecord

CacheRule = Literal["prefix", "markers", "breakpoints", "none"]

LOOKBACK_BLOCKS = 20
"""Positions that Anthropic searches back, the marker's included."""

BREAKPOINTS = 80
"""User or tool messages that OpenAI searches back."""

MINIMUM_TOKENS = 1024
"""Shorter prompts are not cached."""

HEAD = 0

NOTHING = -1
"""No prefix."""

_WIRE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""A call id that Pi's Anthropic adapter sends unchanged."""

_MARKED_WIRES = frozenset({"anthropic-messages", "bedrock-converse-stream"})


def rule_of(api: str, provider: str, model: str, *, breaks: bool = False) -> CacheRule:
    """The cache rule of a model record; `breaks` if it names breakpoints."""
    routed = provider == "openrouter" and model.startswith("anthropic/")
    if api in _MARKED_WIRES or routed:
        return "markers"
    return "breakpoints" if breaks else "prefix"


@dataclass(slots=True)
class CacheEntries:
    """Ends of earlier requests: message count to last use, in milliseconds since 1970."""

    used: dict[int, int] = field(default_factory=dict)
    """Of the model that was called last."""
    touched: tuple[int, ...] = ()
    """What the newest request used."""
    model: str = ""
    """The model that was called last."""
    around: str = ""
    """What it was sent before the chat, as a hash; empty: unknown."""
    others: dict[str, tuple[str, dict[int, int]]] = field(default_factory=dict)
    """Of models called before, by name: what came before the chat, and ends."""

    def cut(self, length: int) -> None:
        """Forgets ends beyond `length`."""
        # An end at `length` itself stays: it names the messages before it.
        for used in (self.used, *(used for _, used in self.others.values())):
            for end in [end for end in used if end > length]:
                del used[end]

    def warm(self, time_ms: int) -> None:
        """Renews what the newest request used."""
        for end in self.touched:
            if end in self.used:
                self.used[end] = max(time_ms, self.used[end])

    def apply(self, record: CallRecord) -> None:
        """Applies the next record."""
        cache, shared, end, now = record.cache, record.shared, record.length, record.time_ms
        model = record.model.name
        # Before another model comes: what was renewed is that of the one before.
        self.warm(cache.warmed_ms)
        if "" not in (model, self.model) and model != self.model:
            self.others[self.model] = self.around, self.used
            self.around, self.used = self.others.pop(model, ("", {}))
            self.touched = ()
        self.model = model or self.model
        self.around = cache.around or self.around
        if cache.hit == NOTHING:
            self.used.clear()
        rendered = record.first_rendered
        # From the first message on that is another, is rendered anew or stands beside another of
        # ours, the provider was sent other bytes.
        self.cut(min(shared, record.changed_from, shared if rendered is None else rendered))
        touched = {end, cache.hit, cache.marked}
        self.touched = tuple(n for n in touched if n and n > HEAD)
        if max(self.used.values(), default=0) > now:
            # The clock was set back: nothing can have been used later than now.
            self.used = {number: min(at, now) for number, at in self.used.items()}
        for number in self.touched:
            if number == end or number in self.used:
                self.used[number] = now

    def alive(self, now_ms: int, ttl_s: float, other: str = "") -> list[int]:
        """Unexpired ends, shortest first; `other`: of this model, called before the last one."""
        used = self.others.get(other, ("", {}))[1] if other else self.used
        return sorted(end for end, at in used.items() if now_ms - at <= ttl_s * 1000)


@dataclass(frozen=True, slots=True)
class CacheReach:
    """Prefixes of the prompt that the cache would find."""

    rule: CacheRule
    start: int
    """Messages sent before; 0 if none is cached."""
    warm: bool
    ends: tuple[int, ...] = ()
    """Live ends of earlier requests, shortest first."""
    nearest: int = 0
    """Ends from here on are found without another marker."""
    markable: frozenset[int] = frozenset()
    """Ends where one more marker can go."""
    threads: bool = False
    """The host sends only what is new; a marker makes it send everything."""

    def hit(self, changed_from: int) -> int:
        """The longest cached prefix if messages from `changed_from` on differ."""
        if self.rule == "none" or not self.warm:
            return NOTHING
        if self.rule == "prefix":
            return min(self.start, changed_from)
        # Ends further back than a marker looks are found only if a marker is set on them.
        for at in range(bisect_right(self.ends, changed_from) - 1, -1, -1):
            if self.ends[at] >= self.nearest or self.ends[at] in self.markable:
                return self.ends[at]
        return HEAD if self.rule == "markers" else NOTHING

    def mark(self, hit: int, first_to_go: int | None, *, rebased: bool) -> int | None:
        """Where one more marker pays: on a prefix otherwise lost, after a rebase on what remains,
        else on the newest stable one."""
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
    """What the cache would find. `entries`: live ends of earlier requests; `marks`: one more marker
    is possible."""
    if rule not in ("markers", "breakpoints") or not warm:
        return CacheReach(rule, start, warm)
    ends = tuple(end for end in entries if end <= start)
    if rule == "breakpoints":
        return CacheReach(rule, start, warm, ends, _oldest_breakpoint(plan))
    can = frozenset(end for end in ends if _ends_in_result(plan, end)) if marks else ()
    return CacheReach(rule, start, warm, ends, _nearest(plan), frozenset(can), threads)


def _ends_in_result(plan: Plan, end: int) -> bool:
    # The shim finds the block to mark by the id of its call, so it has to go out unchanged.
    item = plan.items[end - 1]
    if item.kind != "result" or plan.is_omitted(end - 1):
        return False
    return _WIRE_ID.fullmatch(item.call_id) is not None


def _nearest(plan: Plan) -> int:
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


def _oldest_breakpoint(plan: Plan) -> int:
    remaining, index = BREAKPOINTS, len(plan)
    while index > 0 and remaining:
        index -= 1
        remaining -= plan.items[index].kind in ("user", "result") and not plan.is_omitted(index)
    return index + 1 if not remaining else 0


def sent_blocks(plan: Plan, index: int) -> int:
    """Content blocks of a message in a request; a tool result is one."""
    item, op = plan.items[index], plan.ops[index]
    if item.unsent or item.kind == "opaque" or plan.is_omitted(index):
        return 0
    if item.kind == "result":
        return 1
    blocks = item.blocks if op.blocks is None else op.blocks
    return len([b for b in blocks if b.get("type") != "text" or str(b.get("text") or "").strip()])
