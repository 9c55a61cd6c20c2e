"""Judges the prompts of one session: their cost, and what fetching the rest would have cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from foredeck.accounting.cache import (
    CACHES,
    Cache,
    CachedPrompt,
    Hit,
    PromptMaker,
    Shape,
    Shapes,
    chars_of,
    is_sent,
)
from foredeck.context.messages.shape import Message
from foredeck.context.rebase import Prices
from foredeck.model.call_values import DEFAULT_TTL_S
from foredeck_agents.histories.records import RecordedCall, Transcript
from foredeck_bench.judging.evidence import (
    AnswerFacts,
    Needs,
    ReasoningJudge,
    ReasoningKept,
    View,
    answers_of,
    has_code_shape,
    needs_of,
)
from foredeck_lab.replay.options import Calibration, WarmedSide, Warmer, calibrate

RETURN_TOKENS = 300
"""Of a call that fetches something, besides the prompt."""

RETURN_CALLS = 20
"""Calls for which fetched content stays."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How prompts are charged: the cache, its lifetime, and the prices."""

    cache: str = "ideal"
    """A name in `CACHES`."""
    ttl_s: float = DEFAULT_TTL_S
    prices: Prices = field(default_factory=Prices)
    warmer: Warmer | None = None
    """Renews the cache before it expires."""


@dataclass(slots=True)
class Spent:
    read: float = 0.0
    written: float = 0.0
    plain: float = 0.0

    def add(self, read: float, written: float, plain: float) -> None:
        """Add tokens to each count."""
        self.read += read
        self.written += written
        self.plain += plain


@dataclass(slots=True)
class Judgement:
    """Figures over one session's prompts, in uncached input tokens."""

    rule: Rule = field(default_factory=Rule)
    calls: int = 0
    spent: dict[str, Spent] = field(default_factory=lambda: {name: Spent() for name in CACHES})
    """By cache; `rule.cache` is one of them."""
    asked: float = 0.0
    """Cost of asking a model for observations."""
    questions: int = 0
    """How often one was asked."""
    returned: float = 0.0
    """Fetching what was not in view."""
    peak: float = 0.0
    """Tokens of the largest prompt."""
    summed: float = 0.0
    """Tokens of all prompts."""
    edits: int = 0
    edits_seen: int = 0
    names: int = 0
    """Identifiers copied from a tool result."""
    names_seen: int = 0
    names_itself: int = 0
    """Of these, in view in more than a digest."""
    code_names: int = 0
    """Those that have the shape of code."""
    code_names_seen: int = 0
    code_names_itself: int = 0
    own_words: int = 0
    """Identifiers reused from the model's own answers."""
    own_words_seen: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    """Cached tokens that had to be written again, by cause."""
    rebases: Counter[str] = field(default_factory=Counter)
    invalid_prompts: int = 0
    """Those that a provider would not accept."""
    reasoning: ReasoningKept = field(default_factory=ReasoningKept)

    @property
    def cached_tokens(self) -> float:
        """Tokens that were read from the cache."""
        return self.spent[self.rule.cache].read

    @property
    def cached(self) -> float:
        return self.cached_tokens * self.rule.prices.read

    @property
    def uncached(self) -> float:
        """Cost of the rest."""
        return self.cost - self.cached

    @property
    def cost(self) -> float:
        """Cost of the prompts, and of asking for observations."""
        return self.cost_by(self.rule.cache) + self.asked

    @property
    def all_in(self) -> float:
        """That, and the cost of fetching what was not in view."""
        return self.cost + self.returned

    def cost_by(self, cache: str) -> float:
        spent, prices = self.spent[cache], self.rule.prices
        return spent.read * prices.read + spent.written * prices.write + spent.plain

    def add(self, other: Judgement) -> None:
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for cache, spent in other.spent.items():
            self.spent[cache].add(spent.read, spent.written, spent.plain)
        self.peak = max(self.peak, other.peak)
        self.reasoning.add(other.reasoning)
        self.lost.update(other.lost)
        self.rebases.update(other.rebases)


_SUMMED = (
    *("calls", "returned", "summed", "edits", "edits_seen", "names", "names_seen"),
    *("names_itself", "code_names", "code_names_seen", "code_names_itself"),
    *("own_words", "own_words_seen"),
    *("asked", "questions", "invalid_prompts"),
)


@dataclass(slots=True)
class SessionFacts:
    """What holds for a session however its prompts are assembled."""

    needs: list[Needs]
    tokens: list[float]
    """Size of each recorded message."""
    calibration: Calibration
    answers: list[AnswerFacts]

    @classmethod
    def of(cls, transcript: Transcript) -> SessionFacts:
        """The facts about a session."""
        calibration = calibrate(transcript)
        tokens = [chars_of(r.message) / calibration.chars_per_token for r in transcript.messages]
        return cls(needs_of(transcript), tokens, calibration, answers_of(transcript))


class Judge:
    """Judges one session's prompts in order.

    `more_tokens`: added before the messages.
    """

    def __init__(
        self,
        facts: SessionFacts,
        rule: Rule | None = None,
        *,
        more_tokens: float = 0.0,
        keeps_behind: bool = False,
    ) -> None:
        self.rule = rule or Rule()
        self.judgement = Judgement(self.rule)
        self._facts = facts
        self._rate = facts.calibration.chars_per_token
        self._head = facts.calibration.head_tokens + more_tokens
        self._caches: dict[str, Cache] = {
            name: cache(self.rule.ttl_s) for name, cache in CACHES.items()
        }
        self._prompts = PromptMaker(self._rate)
        self._shapes = Shapes()
        self._view = View()
        self._last: tuple[str, list[Shape], float] | None = None
        self._sent: CachedPrompt | None = None
        self._warmed = WarmedSide()
        self._stays: dict[int, int] = {}
        self._reasoning = ReasoningJudge(
            facts.answers, self.judgement.reasoning, keeps_behind=keeps_behind
        )

    def wait(self, call: RecordedCall, *, idle: bool) -> int:
        """Renews the cache until the next call, if the rule says so; returns when, in milliseconds
        since 1970."""
        if self.rule.warmer is not None and self._sent is not None:
            for time_ms in self._warmed.wait(self.rule.warmer, call.time_ms, idle=idle):
                for name, cache in self._caches.items():
                    hit = cache.request(self._sent, time_ms)
                    rest = self._sent.tokens - hit.read - hit.written
                    self.judgement.spent[name].add(hit.read, hit.written, rest)
        return self._warmed.used_ms

    def sum_up(self, tokens: int) -> None:
        if self._sent is not None:
            prices = self.rule.prices
            self.judgement.asked += prices.cost(self._sent.tokens, 0) + prices.output * tokens

    def see(
        self,
        call: RecordedCall,
        prompt: Sequence[Message],
        rebase: str | None = None,
        marker: str = "",
    ) -> None:
        """Judges the next prompt.

        `marker`: the call whose result carries one more cache marker.
        """
        shapes = self._shapes.of(prompt)
        cached = self._prompts.make(call.name, shapes, self._head, marker)
        tokens = cached.tokens
        hits = {name: cache.request(cached, call.time_ms) for name, cache in self._caches.items()}
        judgement = self.judgement
        for name, hit in hits.items():
            judgement.spent[name].add(hit.read, hit.written, tokens - hit.read - hit.written)
        self._reasoning.see(cached.places, [each for each in prompt if is_sent(each)])
        judgement.summed += tokens
        judgement.peak = max(judgement.peak, tokens)
        if rebase is not None:
            judgement.rebases[rebase] += 1
        self._blame(call.name, shapes, hits, rebase)
        self._last, self._sent = (call.name, shapes, tokens), cached
        self._warmed.tokens, self._warmed.used_ms = tokens, call.time_ms
        self._view.show(shapes)
        self._miss(tokens)
        judgement.calls += 1

    def _blame(
        self, model: str, shapes: list[Shape], hits: Mapping[str, Hit], rebase: str | None
    ) -> None:
        """Puts lost tokens down to their cause; `rule` if an ideal cache had them."""
        hit = hits[self.rule.cache]
        if self._last is None:
            return
        last_model, last, tokens = self._last
        lost = tokens - hit.read
        if lost < 1:
            return
        if model != last_model:
            cause = "model"
        elif hit.lasting > hit.read:
            cause = "expiry"
        elif rebase is not None:
            cause = f"rebase: {rebase}"
        elif hits["ideal"].read > hit.read:
            cause = "rule"
        else:
            cause = "history" if len(shapes) < len(last) else "changed"
        self.judgement.lost[cause] += round(lost)

    def _miss(self, tokens: float) -> None:
        judgement, call = self.judgement, self.judgement.calls
        needs, prices = self._facts.needs[call], self.rule.prices
        self._stays = {index: until for index, until in self._stays.items() if until > call}
        missed: set[int] = set()
        for text, holder in needs.edits:
            seen = self._view.has_text(text)
            judgement.edits += 1
            judgement.edits_seen += seen
            if not seen and holder is not None:
                missed.add(holder)
        for name, holder in needs.names.items():
            seen = self._view.has_name(name)
            if name in needs.copied:
                self._count_name(name, seen)
            if not seen:
                missed.add(holder)
        judgement.own_words += len(needs.own_words)
        judgement.own_words_seen += sum(map(self._view.has_name, needs.own_words))
        fetched = missed - self._stays.keys()
        if fetched:
            judgement.returned += prices.read * tokens + RETURN_TOKENS
        for index in fetched:
            calls = min(RETURN_CALLS, len(self._facts.needs) - call)
            judgement.returned += self._facts.tokens[index] * (prices.write + prices.read * calls)
            self._stays[index] = call + RETURN_CALLS

    def _count_name(self, name: str, seen: bool) -> None:
        judgement, itself = self.judgement, self._view.has_name_itself(name)
        judgement.names += 1
        judgement.names_seen += seen
        judgement.names_itself += itself
        if has_code_shape(name):
            judgement.code_names += 1
            judgement.code_names_seen += seen
            judgement.code_names_itself += itself
