"""What a provider's prompt cache would hold, by rule, and messages as it compares them.

Sizes are in tokens.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from foredeck.context.messages.items import block_chars
from foredeck.context.messages.shape import UNSENT_STOPS, Message
from foredeck.context.provider_cache import BREAKPOINTS, LOOKBACK_BLOCKS, MINIMUM_TOKENS


@dataclass(frozen=True, slots=True)
class Shape:
    """One message of a prompt. Equal hashes mean equal bytes."""

    hash: bytes
    chars: int = field(compare=False)
    texts: tuple[str, ...] = field(compare=False)
    blocks: int = field(default=1, compare=False)
    """Content blocks of the message in a request."""
    role: str = field(default="user", compare=False)
    answers: str = field(default="", compare=False)
    """A tool result: id of the call."""

    @property
    def asks(self) -> bool:
        """Whether the provider takes it as the user's, so that it may be marked."""
        return self.role != "assistant"


def is_sent(message: Message) -> bool:
    """Whether the host sends the message: not if failed, aborted or kept out."""
    if message.get("role") == "assistant":
        return message.get("stopReason") not in UNSENT_STOPS
    return not message.get("excludeFromContext")


def texts_of(message: Message) -> list[str]:
    """Everything in a message that a model reads."""
    content = message.get("content")
    if content is None:
        names = ("command", "output", "summary")
        return [text for name in names if isinstance(text := message.get(name), str)]
    return [text for text in _strings(content) if text]


def blocks_of(message: Message) -> list[dict[str, Any]]:
    content = message.get("content")
    listed = content if isinstance(content, list) else []
    return [block for block in listed if isinstance(block, dict)]


def _strings(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
        return
    for block in blocks_of({"content": content}):
        kind = block.get("type")
        if kind == "toolCall":
            yield str(block.get("name") or "")
            yield from leaves(block.get("arguments"))
        elif kind in ("text", "thinking"):
            yield str(block.get(kind) or "")


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


class Shapes:
    """Shapes of messages, each computed once per content; `keeps` for a caller with parts of
    prompts."""

    def __init__(self, *, keeps: bool = False) -> None:
        self._keeps = keeps
        self._by_hash: dict[bytes, Shape] = {}
        self._by_object: dict[int, tuple[Message, Shape]] = {}

    def of(self, prompt: Sequence[Message]) -> list[Shape]:
        shapes_by_object, shapes = self._by_object, []
        held = shapes_by_object if self._keeps else {}
        for message in prompt:
            if not is_sent(message):
                continue
            # By identity, so that a prompt of a thousand messages with two new ones costs two. The
            # message is held beside its shape: its id would otherwise pass to another object.
            pair = shapes_by_object.get(id(message)) or (message, self._shape(message))
            held[id(message)] = pair
            shapes.append(pair[1])
        self._by_object = held
        return shapes

    def _shape(self, message: Message) -> Shape:
        visible = {k: v for k, v in message.items() if k in _READ_BY_MODELS}
        body = json.dumps(visible, ensure_ascii=False, sort_keys=True)
        digest = hashlib.blake2b(body.encode(errors="surrogatepass"), digest_size=16).digest()
        shape = self._by_hash.get(digest)
        if shape is None:
            shape = Shape(
                digest,
                chars_of(message),
                tuple(texts_of(message)),
                wire_blocks(message),
                str(message.get("role") or ""),
                str(message.get("toolCallId") or ""),
            )
            self._by_hash[digest] = shape
        return shape


def wire_blocks(message: Message) -> int:
    """Content blocks that a message makes in a request; a tool result is one, images and all."""
    if message.get("role") == "toolResult" or not isinstance(message.get("content"), list):
        return 1
    return len([b for b in blocks_of(message) if not _is_empty(b)])


def _is_empty(block: dict[str, Any]) -> bool:
    """Whether the host leaves the block out, as text without a word."""
    if block.get("type") == "thinking":
        return not (block.get("thinking") or block.get("thinkingSignature"))
    return block.get("type") == "text" and not str(block.get("text") or "").strip()


_READ_BY_MODELS = frozenset({"role", "content", "command", "output", "summary", "toolCallId"})


def chars_of(message: Message) -> int:
    if isinstance(message.get("content"), list):
        return sum(map(block_chars, blocks_of(message)))
    return sum(map(len, texts_of(message)))


STEP_TOKENS = 128
"""OpenAI's cache is read in steps of this many tokens."""


@dataclass(frozen=True, slots=True)
class PromptPlace:
    """The end of one message of a prompt, or of what precedes the first."""

    tip: bytes
    """Hash of everything up to here."""
    tokens: float
    blocks: int
    """Content blocks before it."""
    asks: int = 0


@dataclass(frozen=True, slots=True)
class CachedPrompt:
    """A prompt as a cache sees it: ends of messages, and which of them are marked."""

    places: Sequence[PromptPlace]
    marks: Sequence[int]

    @property
    def tokens(self) -> float:
        """Size of the whole prompt."""
        return self.places[-1].tokens


@dataclass(frozen=True, slots=True)
class Hit:
    """Tokens read and written."""

    read: float
    written: float


class Cache(Protocol):
    """One account's cache."""

    def request(self, prompt: CachedPrompt, time_ms: int) -> Hit:
        """Looks a prompt up, then caches as much of it as the rule does."""


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

    def make(self, model: str, shapes: list[Shape], head: float, mark: str) -> CachedPrompt:
        """The prompt of these messages with Pi's cache markers; do not change the list afterwards.

        `mark`: the call whose result carries one more marker.
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
            last = PromptPlace(tip, tokens, last.blocks + shape.blocks, last.asks + shape.asks)
            places.append(last)
        self._shapes, self._places = shapes, places
        return CachedPrompt(places, self._marked(mark))

    def _marked(self, mark: str) -> list[int]:
        # Pi itself marks the first and the last; the one at a result is what the engine asks for.
        marks, shapes = [0], self._shapes
        number = self._answers.get(mark, len(shapes)) if mark else len(shapes)
        if number < len(shapes) - 1 and shapes[number].answers == mark and shapes[number].asks:
            marks.append(number + 1)
        return [*marks, len(shapes)] if shapes and shapes[-1].asks else marks


def _shared(one: list[Shape], other: list[Shape]) -> int:
    length = min(len(one), len(other))
    if one[:length] == other[:length]:  # as nearly always, and by far the fastest
        return length
    return next((n for n in range(length) if one[n] != other[n]), length)


class IdealCache:
    """Keeps every prefix that was used within `ttl_s`."""

    # Of the newest prompt all places were used at the same time. So a prompt that goes on from it
    # costs only what it adds: when a place was used last is noted once the newest prompt lacks it.

    def __init__(self, ttl_s: float) -> None:
        self._ttl_ms = ttl_s * 1000
        self._newest: Sequence[PromptPlace] = ()
        self._time_ms = 0
        """When the newest prompt was sent."""
        self._used: dict[bytes, int] = {}

    def request(self, prompt: CachedPrompt, time_ms: int) -> Hit:
        places, newest = prompt.places, self._newest
        shared = _common_places(newest, places)
        is_alive = shared > 0 and time_ms - self._time_ms <= self._ttl_ms
        hit = places[shared - 1].tokens if is_alive else 0.0
        self._used.update((place.tip, self._time_ms) for place in newest[shared:])
        for place in places[shared:]:
            used = self._used.get(place.tip)
            if used is None:
                # A tip is a hash of all that precedes it: none can be known after this one.
                break
            if time_ms - used <= self._ttl_ms:
                hit = place.tokens
        self._newest, self._time_ms = places, time_ms
        return Hit(hit, prompt.tokens - hit)


def _common_places(one: Sequence[PromptPlace], other: Sequence[PromptPlace]) -> int:
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
    """OpenAI's: the longest prefix in whole steps; short prompts are not cached."""

    def __init__(self, ttl_s: float) -> None:
        self._ideal = IdealCache(ttl_s)

    def request(self, prompt: CachedPrompt, time_ms: int) -> Hit:
        read = _stepped(self._ideal.request(prompt, time_ms).read)
        return Hit(read, prompt.tokens - read)


def _stepped(tokens: float) -> float:
    return tokens // STEP_TOKENS * STEP_TOKENS if tokens >= MINIMUM_TOKENS else 0.0


class BreakpointCache:
    """OpenAI's from GPT-5.6 on: an earlier prompt as a whole, without explicit breakpoints."""

    def __init__(self, ttl_s: float) -> None:
        self._ttl_ms = ttl_s * 1000
        self._used: dict[bytes, int] = {}

    def request(self, prompt: CachedPrompt, time_ms: int) -> Hit:
        end = prompt.places[-1]
        if end.tokens < MINIMUM_TOKENS:
            return Hit(0.0, 0.0)
        near = (place for place in prompt.places if place.asks > end.asks - BREAKPOINTS)
        oldest = time_ms - self._ttl_ms
        alive = [place for place in near if self._used.get(place.tip, -math.inf) >= oldest]
        self._used.update((place.tip, time_ms) for place in (end, *alive[-1:]))
        read = max((place.tokens for place in alive), default=0.0)
        return Hit(read, prompt.tokens - read)


class MarkedCache:
    """Anthropic's: a prefix only up to a marker; short prompts are not cached."""

    def __init__(self, ttl_s: float) -> None:
        self._ttl_ms = ttl_s * 1000
        self._used: dict[bytes, int] = {}

    def request(self, prompt: CachedPrompt, time_ms: int) -> Hit:
        """What follows the last marker is neither read nor written."""
        places = prompt.places
        marks = [m for m in prompt.marks if places[m].tokens >= MINIMUM_TOKENS]
        # A new request looks back a limited number of content blocks from each of its markers.
        oldest, reach = time_ms - self._ttl_ms, _in_reach(places, marks)
        alive = [i for i in reach if self._used.get(places[i].tip, -math.inf) >= oldest]
        read = max((places[i].tokens for i in alive), default=0.0)
        # An entry that is read or marked again lives on from now.
        for index in (*marks, *alive[-1:]):
            self._used[places[index].tip] = time_ms
        end = places[marks[-1]].tokens if marks else 0.0
        return Hit(read, max(0.0, end - read))


def _in_reach(places: Sequence[PromptPlace], marks: Iterable[int]) -> list[int]:
    found: set[int] = set()
    for mark in marks:
        index = mark
        while index >= 0 and places[mark].blocks - places[index].blocks < LOOKBACK_BLOCKS:
            found.add(index)
            index -= 1
    return sorted(found)


CACHES: dict[str, Callable[[float], Cache]] = {
    "ideal": IdealCache,
    "anthropic": MarkedCache,
    "openai": SteppedCache,
    "breakpoints": BreakpointCache,
}
"""By the name that the user chooses."""
