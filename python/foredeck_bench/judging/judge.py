"""Judges the prompts of one session: their cost, what the model had in view, and what the rest
would have cost to fetch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from foredeck.accounting.cache import CACHES, Cache, Hit, PromptMaker
from foredeck.accounting.shapes import Shape, Shapes, chars_of, is_sent
from foredeck.context.messages.shape import Message
from foredeck.context.rebase import DEFAULT_TTL_S, Prices
from foredeck.histories.records import RecordedCall, Transcript
from foredeck.replay.options import Calibration, calibrate
from foredeck_bench.judging.evidence import Needs, View, has_code_shape, needs_of
from foredeck_bench.judging.reasoning import (
    AnswerFacts,
    ReasoningJudge,
    ReasoningKept,
    answers_of,
)

RETURN_TOKENS = 300
"""What a call that fetches something costs, besides reading the prompt from the cache."""

RETURN_CALLS = 20
"""For how many calls fetched content stays in view."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How prompts are charged: the cache, the seconds after which it expires, and the prices."""

    cache: str = "ideal"
    """A name in `CACHES`."""
    ttl_s: float = DEFAULT_TTL_S
    prices: Prices = field(default_factory=Prices)


@dataclass(slots=True)
class Spent:
    """Tokens of prompts: read from a cache, written to it, and neither."""

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
    """Figures over the prompts of one session. Costs are in uncached input tokens."""

    rule: Rule = field(default_factory=Rule)
    calls: int = 0
    spent: dict[str, Spent] = field(default_factory=lambda: {name: Spent() for name in CACHES})
    """By cache; `rule.cache` is one of them."""
    asked: float = 0.0
    """Cost of asking a model for observations."""
    questions: int = 0
    """How often one was asked."""
    returned: float = 0.0
    """Cost of fetching what was not in view."""
    peak: float = 0.0
    """Tokens of the largest prompt."""
    summed: float = 0.0
    """Tokens of all prompts."""
    edits: int = 0
    edits_seen: int = 0
    names: int = 0
    """Identifiers that can only have been copied from a tool result."""
    names_seen: int = 0
    names_itself: int = 0
    """Those that were in view in more than the digest of a folded result."""
    code_names: int = 0
    """Those that have the shape of code."""
    code_names_seen: int = 0
    code_names_itself: int = 0
    own_words: int = 0
    """Identifiers that only the model's own earlier answers held and that it used again."""
    own_words_seen: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    """Tokens that the call before had cached and this one had to write, by cause."""
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
        """Cost of what was read from the cache."""
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
        """Cost of the same prompts by the rule of another cache."""
        spent, prices = self.spent[cache], self.rule.prices
        return spent.read * prices.read + spent.written * prices.write + spent.plain

    def add(self, other: Judgement) -> None:
        """Add another session that was judged by the same rule; the peak is the larger one."""
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
    """What holds for a recorded session however its prompts are assembled; computed once."""

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
    """Judges the prompts of one session, in order.

    `more_tokens`: what precedes the messages in addition to what did when it was recorded.
    """

    def __init__(
        self, facts: SessionFacts, rule: Rule | None = None, *, more_tokens: float = 0.0
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
        self._stays: dict[int, int] = {}
        self._reasoning = ReasoningJudge(facts.answers, self.judgement.reasoning)

    def see(
        self,
        call: RecordedCall,
        prompt: Sequence[Message],
        rebase: str | None = None,
        marker: str = "",
    ) -> None:
        """Judge the next prompt.

        `rebase`: why it was rewritten, None if it was not. `marker`: the tool call whose result
        carries a cache marker in addition to the host's.
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
        self._last = (call.name, shapes, tokens)
        self._view.show(shapes)
        self._miss(tokens)
        judgement.calls += 1

    def _blame(
        self, model: str, shapes: list[Shape], hits: Mapping[str, Hit], rebase: str | None
    ) -> None:
        """Put lost tokens down to their cause; `rule` where an ideal cache would have had them."""
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
        """Count what the answer needed; what was not in view is fetched, and stays a while."""
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
