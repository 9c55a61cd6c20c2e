"""Judges the prompts of one session: their cost, and what fetching the rest would have cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from foredeck.accounting.cache import CACHES, CachedPrompt, PromptMaker, Shapes, chars_of, is_sent
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
    needs_of,
)
from foredeck_lab.replay.pi import Calibration, WarmedSide, Warmer, awaits_user, calibrate

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
class Judgement:
    """Figures over one session's prompts, in uncached input tokens."""

    rule: Rule = field(default_factory=Rule)
    calls: int = 0
    read: float = 0.0
    written: float = 0.0
    plain: float = 0.0
    """Tokens that were neither."""
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
    """Identifiers with the shape of code that were copied from a tool result."""
    names_seen: int = 0
    own_words: int = 0
    """Identifiers reused from the model's own answers."""
    own_words_seen: int = 0
    rebases: Counter[str] = field(default_factory=Counter)
    invalid_prompts: int = 0
    """Those that a provider would not accept."""
    reasoning: ReasoningKept = field(default_factory=ReasoningKept)

    @property
    def cost(self) -> float:
        """Cost of the prompts, and of asking for observations."""
        prices = self.rule.prices
        return self.read * prices.read + self.written * prices.write + self.plain + self.asked

    @property
    def all_in(self) -> float:
        """That, and the cost of fetching what was not in view."""
        return self.cost + self.returned

    def add(self, other: Judgement) -> None:
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.peak = max(self.peak, other.peak)
        self.reasoning.add(other.reasoning)


_SUMMED = (
    *("calls", "read", "written", "plain", "asked", "questions", "returned", "summed"),
    *("edits", "edits_seen", "names", "names_seen", "own_words", "own_words_seen"),
    *("rebases", "invalid_prompts"),
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
        self._cache = CACHES[self.rule.cache](self.rule.ttl_s)
        self._prompts = PromptMaker(self._rate)
        self._shapes = Shapes()
        self._view = View()
        self._sent: CachedPrompt | None = None
        self._warmed = WarmedSide()
        self._stays: dict[int, int] = {}
        self._reasoning = ReasoningJudge(
            facts.answers, self.judgement.reasoning, keeps_behind=keeps_behind
        )

    def wait(self, transcript: Transcript, call: RecordedCall) -> int:
        """Renews the cache until the next call, if the rule says so; returns when, in milliseconds
        since 1970."""
        if self.rule.warmer is not None and self._sent is not None:
            idle = awaits_user(transcript, call)
            for time_ms in self._warmed.wait(self.rule.warmer, call.time_ms, idle=idle):
                self._charge(self._sent, time_ms)
        return self._warmed.used_ms

    def _charge(self, prompt: CachedPrompt, time_ms: int) -> None:
        hit, judgement = self._cache.request(prompt, time_ms), self.judgement
        judgement.read += hit.read
        judgement.written += hit.written
        judgement.plain += prompt.tokens - hit.read - hit.written

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
        shapes, judgement = self._shapes.of(prompt), self.judgement
        cached = self._prompts.make(call.name, shapes, self._head, marker)
        tokens = cached.tokens
        self._charge(cached, call.time_ms)
        self._reasoning.see(cached.places, [each for each in prompt if is_sent(each)])
        judgement.summed += tokens
        judgement.peak = max(judgement.peak, tokens)
        if rebase is not None:
            judgement.rebases[rebase] += 1
        self._sent = cached
        self._warmed.tokens, self._warmed.used_ms = tokens, call.time_ms
        self._view.show(shapes)
        self._miss(tokens)
        judgement.calls += 1

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
                judgement.names += 1
                judgement.names_seen += seen
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
