"""Judging one session's prompts, call by call: cost, evidence, and what missing things cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from foredeck.bench.economics.cache import READ, WRITE, Hit, PrefixCache
from foredeck.bench.economics.calibration import Calibration, calibrate
from foredeck.bench.economics.evidence import Needs, View, needs_of
from foredeck.bench.economics.shapes import Shape, Shapes, chars_of
from foredeck.bench.transcripts import Message, RecordedCall, Transcript
from foredeck.context.rebase import DEFAULT_TTL_S

RETURN_TOKENS = 300
"""What the call costs that fetches something missed, beside reading the prompt from the cache."""

RETURN_CALLS = 20
"""For how many calls something fetched stays."""


@dataclass(slots=True)
class Judgement:
    """What came of the prompts of one session. Costs are in uncached input tokens."""

    calls: int = 0
    cached_tokens: float = 0.0
    written_tokens: float = 0.0
    returned: float = 0.0
    """Cost of fetching what was missed."""
    peak: float = 0.0
    """Tokens of the largest prompt."""
    summed: float = 0.0
    """Tokens of all prompts."""
    edits: int = 0
    edits_seen: int = 0
    names: int = 0
    names_seen: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    """Tokens that the call before had cached and this one had to write, by cause."""
    rebases: Counter[str] = field(default_factory=Counter)

    @property
    def cached(self) -> float:
        """Cost of what was read from the cache."""
        return self.cached_tokens * READ

    @property
    def uncached(self) -> float:
        """Cost of what was written to it."""
        return self.written_tokens * WRITE

    @property
    def cost(self) -> float:
        """Cost of the prompts."""
        return self.cached + self.uncached

    @property
    def all_in(self) -> float:
        """Cost of the prompts and of fetching what they lacked."""
        return self.cost + self.returned

    def add(self, other: Judgement) -> None:
        """Sum up over sessions; the peak is the larger one."""
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.peak = max(self.peak, other.peak)
        self.lost.update(other.lost)
        self.rebases.update(other.rebases)


_SUMMED = (
    "calls",
    "cached_tokens",
    "written_tokens",
    "returned",
    "summed",
    "edits",
    "edits_seen",
    "names",
    "names_seen",
)


@dataclass(slots=True)
class Facts:
    """What is the same for every way to assemble a recorded session; computed once."""

    needs: list[Needs]
    tokens: list[float]
    """Of each recorded message."""
    calibration: Calibration

    @classmethod
    def of(cls, transcript: Transcript) -> Facts:
        """The facts of a session."""
        calibration = calibrate(transcript)
        tokens = [chars_of(r.message) / calibration.chars_per_token for r in transcript.messages]
        return cls(needs_of(transcript), tokens, calibration)


class Judge:
    """Is shown the prompts of one session in order.

    `more_tokens`: what stands before the messages beside what the recording had there.
    """

    def __init__(
        self, facts: Facts, *, ttl_s: float = DEFAULT_TTL_S, more_tokens: float = 0.0
    ) -> None:
        self.judgement = Judgement()
        self._facts = facts
        self._rate = facts.calibration.chars_per_token
        self._head = (facts.calibration.head_tokens + more_tokens) * self._rate
        self._cache = PrefixCache(ttl_s)
        self._shapes = Shapes()
        self._view = View()
        self._last: tuple[str, list[Shape], float] | None = None
        self._stays: dict[int, int] = {}

    def see(self, call: RecordedCall, prompt: Sequence[Message], rebase: str | None = None) -> None:
        """The next prompt. `rebase`: why it was written anew, where it was."""
        shapes = self._shapes.of(prompt)
        tokens = (self._head + sum(shape.chars for shape in shapes)) / self._rate
        hit = self._cache.request(call.name, shapes, self._head, call.time_ms)
        told = self.judgement
        cached = hit.chars / self._rate
        told.cached_tokens += cached
        told.written_tokens += tokens - cached
        told.summed += tokens
        told.peak = max(told.peak, tokens)
        if rebase is not None:
            told.rebases[rebase] += 1
        self._blame(call.name, shapes, hit, rebase)
        self._last = (call.name, shapes, tokens)
        self._view.show(shapes)
        self._miss(tokens)
        told.calls += 1

    def _blame(self, model: str, shapes: list[Shape], hit: Hit, rebase: str | None) -> None:
        """Put a lost hit down to its cause."""
        if self._last is None:
            return
        last_model, last, tokens = self._last
        lost = tokens - hit.chars / self._rate
        if lost < 1:
            return
        if model != last_model:
            cause = "model"
        elif hit.lasting > hit.chars:
            cause = "expiry"
        elif rebase is not None:
            cause = f"rebase: {rebase}"
        else:
            cause = "history" if len(shapes) < len(last) else "changed"
        self.judgement.lost[cause] += round(lost)

    def _miss(self, tokens: float) -> None:
        """Count what the answer needed; what was not in view is fetched and stays a while."""
        told, call = self.judgement, self.judgement.calls
        needs = self._facts.needs[call]
        self._stays = {index: until for index, until in self._stays.items() if until > call}
        missed: set[int] = set()
        for text, holder in needs.edits:
            seen = self._view.has_text(text)
            told.edits += 1
            told.edits_seen += seen
            if not seen and holder is not None:
                missed.add(holder)
        for name, holder in needs.names.items():
            seen = self._view.has_name(name)
            told.names += 1
            told.names_seen += seen
            if not seen:
                missed.add(holder)
        fetched = missed - self._stays.keys()
        if fetched:
            told.returned += READ * tokens + RETURN_TOKENS
        for index in fetched:
            calls = min(RETURN_CALLS, len(self._facts.needs) - call)
            told.returned += self._facts.tokens[index] * (WRITE + READ * calls)
            self._stays[index] = call + RETURN_CALLS
