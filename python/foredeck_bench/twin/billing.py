"""What a prompt costs: a model's prices by Pi's own record, and the providers' caches, each by its
own documented rule.

- `markers` (Anthropic): an entry stands only where a cache marker stood; each marker of a new
  request looks back 20 blocks for the longest entry that is alive.
  platform.claude.com/docs/en/build-with-claude/prompt-caching
- `breakpoints` (OpenAI from GPT-5.6 on): an entry is found only exactly at a breakpoint. A request
  writes one implicit breakpoint, after its newest message of the user or of a tool, and its latest
  three explicit ones (four in mode `explicit`, which has no implicit one); the latest 80 of a
  conversation are looked at. developers.openai.com/api/docs/guides/prompt-caching
- `steps` (OpenAI before that, and most others): the longest prefix, in steps of 128 tokens.
- `prefix` (Google's implicit cache): the longest prefix from 4,096 tokens on.
  ai.google.dev/gemini-api/docs/caching; it names no life and promises no hit, so both are
  assumptions here.

Beside the hit by the rule, the ideal one is reported: the longest prefix, block by block, that any
live request had.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal

from foredeck_bench.twin.prompts import Segment, segments
from foredeck_bench.twin.script import Api, Json, ModelRequest

LOOKBACK_BLOCKS = 20
BREAKPOINTS_CONSIDERED = 80
WRITES_IMPLICIT = 3
WRITES_EXPLICIT = 4
STEP_TOKENS = 128
LONG_S = 3600.0
"""Of what a marker with `ttl: "1h"` has written."""

Kind = Literal["markers", "breakpoints", "steps", "prefix"]


@dataclass(frozen=True, slots=True)
class CacheRule:
    """What a provider keeps, from how many tokens on, and how long."""

    kind: Kind
    lifetime_s: float
    minimum_tokens: int = 1024


RULES: Mapping[Api, CacheRule] = {
    "anthropic-messages": CacheRule("markers", 300.0),
    "openai-responses": CacheRule("breakpoints", 1800.0),
    "openai-completions": CacheRule("steps", 300.0),
    "google-generative-ai": CacheRule("prefix", 300.0, 4096),
}
"""Where no model's record says otherwise."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request.

    `ideal`: what an unlimited cache would have read.
    """

    read: int
    written: int
    uncached: int
    output: int
    ideal: int
    written_long: int = 0

    @property
    def prompt(self) -> int:
        """All tokens of the prompt."""
        return self.read + self.written + self.uncached


@dataclass(slots=True)
class _Entry:
    at_s: float
    life_s: float


@dataclass(slots=True)
class PromptCache:
    """Entries of one account; `rule` overrides each API's own."""

    rule: CacheRule | None = None
    _entries: dict[str, _Entry] = field(default_factory=dict)
    _seen: dict[str, _Entry] = field(default_factory=dict)

    def serve(self, request: ModelRequest, output_tokens: int, now_s: float) -> Usage:
        """The usage of an accepted request, which then is cached."""
        rule = self.rule or RULES[request.api]
        rows = segments(request)
        total = rows[-1].tokens if rows else 0
        ideal = _longest(rows, self._alive(self._seen, now_s))
        read, stored, long = 0, 0, 0
        if rule.kind == "markers":
            marks = [i for i, row in enumerate(rows) if row.marker]
            read, stored, long = self._serve(rows, _in_reach(marks), marks, rule, now_s)
        elif rule.kind == "breakpoints":
            looked_at, writes = _breakpoints(request.raw, rows)
            read, stored, long = self._serve(rows, looked_at, writes, rule, now_s)
        elif ideal >= rule.minimum_tokens:
            read = ideal - ideal % (STEP_TOKENS if rule.kind == "steps" else 1)
        for row in rows:
            self._seen[row.prefix] = _Entry(now_s, rule.lifetime_s)
        return Usage(read, stored, total - read - stored, output_tokens, ideal, long)

    def _serve(
        self,
        rows: list[Segment],
        looked_at: Iterable[int],
        writes: list[int],
        rule: CacheRule,
        now_s: float,
    ) -> tuple[int, int, int]:
        """Tokens read, written, and written for an hour."""
        alive = self._alive(self._entries, now_s)
        marks = [i for i in writes if rows[i].tokens >= rule.minimum_tokens]
        read = _longest([rows[i] for i in looked_at], alive)
        for row in rows:
            if row.prefix in alive and row.tokens <= read:
                self._entries[row.prefix].at_s = now_s
        for mark in marks:
            life = LONG_S if rows[mark].marker == "1h" else rule.lifetime_s
            self._entries[rows[mark].prefix] = _Entry(now_s, life)
        long = [mark for mark in marks if rows[mark].marker == "1h"]
        return read, _after(read, rows, marks), _after(read, rows, long)

    def _alive(self, entries: dict[str, _Entry], now_s: float) -> set[str]:
        return {prefix for prefix, entry in entries.items() if now_s - entry.at_s <= entry.life_s}


def _longest(rows: list[Segment], prefixes: set[str]) -> int:
    return max((row.tokens for row in rows if row.prefix in prefixes), default=0)


def _in_reach(marks: Iterable[int]) -> set[int]:
    return {i for mark in marks for i in range(max(0, mark - LOOKBACK_BLOCKS), mark + 1)}


def _breakpoints(raw: Json, rows: list[Segment]) -> tuple[list[int], list[int]]:
    """Where entries are looked for, and where they are written."""
    explicit = [i for i, row in enumerate(rows) if row.marker == "explicit"]
    implicit = [i for i, row in enumerate(rows) if row.eligible]
    looked_at = sorted({*explicit, *implicit})[-BREAKPOINTS_CONSIDERED:]
    if (raw.get("prompt_cache_options") or {}).get("mode") != "explicit":
        return looked_at, sorted({*explicit[-WRITES_IMPLICIT:], *implicit[-1:]})
    return looked_at if explicit else [], explicit[-WRITES_EXPLICIT:]


def _after(read: int, rows: list[Segment], marks: list[int]) -> int:
    """Tokens from what was read up to the last of these marks."""
    return max(0, max((rows[mark].tokens for mark in marks), default=0) - read)


_BOUND = re.compile(
    r"claude-(fable|mythos)-5[.-][12]|claude-(opus|sonnet|haiku)-5[.-]5|gpt-(6\.[2-9]|[7-9])"
)
"""Models whose reasoning holds only behind an unchanged prefix, in every turn:
platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks;
developers.openai.com/api/docs/guides/preserved-reasoning (from GPT-6.2 on)."""

_FORGETS = re.compile(r"claude-(3|opus-4-[01]|sonnet-4-[05]|haiku-4)|gpt-5(\.[1-5])?(-|$)|^o\d")
"""Models that see only the reasoning of the turn under way: Claude before Opus 4.5, and by
pi-ai 1.6.0 `api/openai-responses-shared.js` (`turn_boundary`) all of OpenAI's before GPT-5.6."""

_ONE_HOUR_FACTOR = 2
"""An hour's cache write costs so many times the input: pi-ai 1.6.0 `models.js`, `calculateCost`."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Dollars per million tokens, for prompts of more than `above` tokens."""

    input: float
    output: float
    read: float
    written: float
    above: int = 0


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A model of one provider.

    `bound`: reasoning holds only behind an unchanged prefix. `carries`: it sees that of earlier
    turns.
    """

    id: str
    rates: tuple[Rates, ...]
    cache: CacheRule
    bound: bool = True
    carries: bool = True
    always_thinks: bool = False

    @classmethod
    def of_pi(cls, api: Api, record: Json) -> ModelRecord:
        cost, compat = record["cost"], record.get("compat") or {}
        rule = RULES[api]
        if rule.kind == "breakpoints" and not compat.get("supportsExplicitPromptCacheMode"):
            rule = RULES["openai-completions"]
        life = (record.get("promptCache") or {}).get("short", rule.lifetime_s)
        name = str(record["id"])
        return cls(
            id=name,
            rates=(
                _rates(cost),
                *sorted(map(_rates, cost.get("tiers") or ()), key=attrgetter("above")),
            ),
            cache=CacheRule(rule.kind, float(life), rule.minimum_tokens),
            bound=bool(_BOUND.search(name)),
            carries=not _FORGETS.search(name),
            always_thinks=(record.get("thinkingLevelMap") or {}).get("off", "") is None,
        )

    def dollars(self, usage: Usage) -> float:
        """What a request costs. A tier holds for the whole request:
        pi-ai 1.6.0 `models.js`, `calculateCost`."""
        rates = [each for each in self.rates if not each.above or usage.prompt > each.above][-1]
        return (
            usage.uncached * rates.input
            + usage.output * rates.output
            + usage.read * rates.read
            + (usage.written - usage.written_long) * rates.written
            + usage.written_long * rates.input * _ONE_HOUR_FACTOR
        ) / 1e6


def _rates(cost: Json) -> Rates:
    above = int(cost.get("inputTokensAbove", 0))
    return Rates(cost["input"], cost["output"], cost["cacheRead"], cost["cacheWrite"], above)
