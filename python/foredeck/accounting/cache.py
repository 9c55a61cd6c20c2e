"""What a provider's prompt cache would hold, by rule. Sizes are in tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from foredeck.accounting.shapes import Shape
from foredeck.context.provider_cache import LOOKBACK_BLOCKS, MINIMUM_TOKENS

STEP_TOKENS = 128
"""OpenAI's cache is read in steps of this many tokens."""


@dataclass(frozen=True, slots=True)
class PromptPlace:
    """The end of one message of a prompt, or of what comes before the first."""

    tip: bytes
    """Hash of everything up to here."""
    tokens: float
    blocks: int
    """Content blocks before it, counted from the first message on."""


@dataclass(frozen=True, slots=True)
class CachedPrompt:
    """A prompt as a cache sees it: the ends of its messages, and which of them carry a marker."""

    places: Sequence[PromptPlace]
    marks: Sequence[int]

    @property
    def tokens(self) -> float:
        """Size of the whole prompt."""
        return self.places[-1].tokens


@dataclass(frozen=True, slots=True)
class Hit:
    """Tokens read from the cache and written to it. `lasting`: those that would have been read had
    nothing ever expired."""

    read: float
    written: float
    lasting: float


class Cache(Protocol):
    """One account's cache."""

    def request(self, prompt: CachedPrompt, time_ms: int) -> Hit:
        """Look a prompt up, then cache as much of it as the rule does."""


class PromptMaker:
    """Makes one prompt after another."""

    # A prompt of thousands of messages shares all but the last few with the one before. So each is
    # made from the places of that one.

    def __init__(self, rate: float) -> None:
        """`rate`: characters per token."""
        self._rate = rate
        self._around: tuple[str, float] | None = None
        self._shapes: list[Shape] = []
        self._places: list[PromptPlace] = []
        self._answers: dict[str, int] = {}
        """Results by the id of their call, and where they stood when they were met last."""

    def make(self, model: str, shapes: list[Shape], head: float, mark: str) -> CachedPrompt:
        """The prompt of these messages with Pi's cache markers and, where asked for, one more. The
        list is kept, and may not be changed afterwards.

        `head`: tokens before the first message; `mark`: id of the tool call whose result carries
        the additional marker, empty for none.
        """
        if self._around != (model, head):
            # Another model or system prompt: no provider finds anything of the last prompt.
            tip = hashlib.blake2b(model.encode(), digest_size=16).digest()
            self._around, self._shapes = (model, head), []
            self._places = [PromptPlace(tip, head, 0)]
        kept = _shared(self._shapes, shapes)
        # A copy: the prompt made last holds the list.
        places = self._places[: kept + 1]
        last = places[-1]
        for number, shape in enumerate(shapes[kept:], start=kept):
            self._answers[shape.answers] = number
            tip = hashlib.blake2b(last.tip + shape.hash, digest_size=16).digest()
            tokens = last.tokens + shape.chars / self._rate
            last = PromptPlace(tip, tokens, last.blocks + shape.blocks)
            places.append(last)
        self._shapes, self._places = shapes, places
        return CachedPrompt(places, self._marked(mark))

    def _marked(self, mark: str) -> list[int]:
        """The places with a marker: before the first message, at the last, and at a result."""
        # Pi itself marks the first and the last; the one at a result is what the engine asks for.
        marks, shapes = [0], self._shapes
        number = self._answers.get(mark, len(shapes)) if mark else len(shapes)
        if number < len(shapes) - 1 and shapes[number].answers == mark and shapes[number].asks:
            marks.append(number + 1)
        return [*marks, len(shapes)] if shapes and shapes[-1].asks else marks


def _shared(one: list[Shape], other: list[Shape]) -> int:
    """How many messages two prompts have in common at the start."""
    length = min(len(one), len(other))
    if one[:length] == other[:length]:  # as nearly always, and by far the fastest
        return length
    return next((n for n in range(length) if one[n] != other[n]), length)


class IdealCache:
    """Keeps every prefix: the longest of any earlier prompt, message by message, if used within
    `ttl_s`."""

    # Of the newest prompt all places were used at the same time. So a prompt that goes on from it
    # costs only what it adds: when a place was used last is noted once the newest prompt lacks it.

    def __init__(self, ttl_s: float) -> None:
        self._ttl_ms = ttl_s * 1000
        self._newest: Sequence[PromptPlace] = ()
        self._time_ms = 0
        """When the newest prompt was sent."""
        self._used: dict[bytes, int] = {}
        """When the places that it does not have were used last."""

    def request(self, prompt: CachedPrompt, time_ms: int) -> Hit:
        """See `Cache`. All that is not read is written."""
        places, newest = prompt.places, self._newest
        shared = _common_places(newest, places)
        lasting = places[shared - 1].tokens if shared else 0.0
        hit = lasting if time_ms - self._time_ms <= self._ttl_ms else 0.0
        self._used.update((place.tip, self._time_ms) for place in newest[shared:])
        for place in places[shared:]:
            used = self._used.get(place.tip)
            if used is None:
                # A tip is a hash of all that precedes it: none can be known after this one.
                break
            lasting = place.tokens
            if time_ms - used <= self._ttl_ms:
                hit = place.tokens
        self._newest, self._time_ms = places, time_ms
        return Hit(hit, prompt.tokens - hit, lasting)


def _common_places(one: Sequence[PromptPlace], other: Sequence[PromptPlace]) -> int:
    """With how many equal places two prompts begin."""
    # A tip is a hash of all that precedes it: the last common one can be searched for by halves.
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high) // 2
        if one[middle].tip == other[middle].tip:
            low = middle + 1
        else:
            high = middle
    return low


class SteppedCache:
    """OpenAI's: the longest prefix in whole steps, and nothing of a short prompt."""

    def __init__(self, ttl_s: float) -> None:
        self._ideal = IdealCache(ttl_s)

    def request(self, prompt: CachedPrompt, time_ms: int) -> Hit:
        """See `Cache`."""
        ideal = self._ideal.request(prompt, time_ms)
        read = _stepped(ideal.read)
        return Hit(read, prompt.tokens - read, _stepped(ideal.lasting))


def _stepped(tokens: float) -> float:
    return tokens // STEP_TOKENS * STEP_TOKENS if tokens >= MINIMUM_TOKENS else 0.0


class MarkedCache:
    """Anthropic's: keeps a prefix only where a marker stood, and nothing of a short prompt."""

    def __init__(self, ttl_s: float) -> None:
        self._ttl_ms = ttl_s * 1000
        self._used: dict[bytes, int] = {}

    def request(self, prompt: CachedPrompt, time_ms: int) -> Hit:
        """See `Cache`. What comes after the last marker is neither read nor written."""
        places = prompt.places
        marks = [m for m in prompt.marks if places[m].tokens >= MINIMUM_TOKENS]
        # A new request looks back a limited number of content blocks from each of its markers.
        known = [i for i in _in_reach(places, marks) if places[i].tip in self._used]
        alive = [i for i in known if time_ms - self._used[places[i].tip] <= self._ttl_ms]
        read = max((places[i].tokens for i in alive), default=0.0)
        # An entry that is read or marked again lives on from now.
        for index in (*marks, *alive[-1:]):
            self._used[places[index].tip] = time_ms
        end = places[marks[-1]].tokens if marks else 0.0
        return Hit(read, max(0.0, end - read), max((places[i].tokens for i in known), default=0.0))


def _in_reach(places: Sequence[PromptPlace], marks: Iterable[int]) -> list[int]:
    """Places at which an entry would be found from one of the markers, in order."""
    found: set[int] = set()
    for mark in marks:
        index = mark
        while index >= 0 and places[mark].blocks - places[index].blocks < LOOKBACK_BLOCKS:
            found.add(index)
            index -= 1
    return sorted(found)


CACHES: dict[str, type[IdealCache] | type[SteppedCache] | type[MarkedCache]] = {
    "ideal": IdealCache,
    "anthropic": MarkedCache,
    "openai": SteppedCache,
}
"""By the name that the user chooses."""
