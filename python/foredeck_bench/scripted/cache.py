"""A simulated prompt cache, by the providers' own rules.

Anthropic keeps an entry only where a cache marker stood, and looks back 20 blocks from each
marker of a new request for the longest entry that is still alive. OpenAI matches the longest
prefix in steps of 128 tokens. Beside the hit by the rule, the ideal one is reported: the longest
prefix, block by block, that any live request had.

Tokens are estimated: characters of text, arguments and tool definitions / 4.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from foredeck_bench.scripted.reasoning import normalized
from foredeck_bench.scripted.request import ModelRequest, content_text

LOOKBACK_BLOCKS = 20
OPENAI_STEP_TOKENS = 128
IMAGE_TOKENS = 1500

_UNREAD = frozenset({"cache_control", "eager_input_streaming"})
"""What a block or a tool tells the provider and no model reads."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request: read from the cache, written to it, neither, and generated.

    `ideal` is what a cache without markers and limits would have read.
    """

    read: int
    written: int
    uncached: int
    output: int
    ideal: int

    @property
    def prompt(self) -> int:
        """All tokens of the prompt."""
        return self.read + self.written + self.uncached


@dataclass(frozen=True, slots=True)
class _Segment:
    """One block: the hash and the tokens of the prompt up to its end, and whether it is marked."""

    prefix: str
    tokens: int
    marked: bool


@dataclass(slots=True)
class PromptCache:
    """Entries of one account. Times are seconds of any clock that only goes forward."""

    lifetime_s: float = 300.0
    minimum_tokens: int = 1024
    _entries: dict[str, float] = field(default_factory=dict)
    _seen: dict[str, float] = field(default_factory=dict)

    def serve(self, request: ModelRequest, output_tokens: int, now_s: float) -> Usage:
        """The usage of an accepted request; the cache then holds what the request leaves in it."""
        segments = _segments(request.body)
        total = segments[-1].tokens if segments else 0
        ideal = _longest(segments, self._alive(self._seen, now_s))
        if request.api == "anthropic-messages":
            read, written = self._serve_marked(segments, now_s)
        else:
            read = ideal - ideal % OPENAI_STEP_TOKENS if ideal >= self.minimum_tokens else 0
            written = 0
        for segment in segments:
            self._seen[segment.prefix] = now_s
        return Usage(read, written, total - read - written, output_tokens, ideal)

    def _serve_marked(self, segments: list[_Segment], now_s: float) -> tuple[int, int]:
        alive = self._alive(self._entries, now_s)
        marks = [i for i, s in enumerate(segments) if s.marked and s.tokens >= self.minimum_tokens]
        read = 0
        for mark in marks:
            window = segments[max(0, mark - LOOKBACK_BLOCKS) : mark + 1]
            read = max(read, _longest(window, alive))
        for segment in segments:
            if segment.prefix in alive and segment.tokens <= read:
                self._entries[segment.prefix] = now_s
        for mark in marks:
            self._entries[segments[mark].prefix] = now_s
        return read, max(0, segments[marks[-1]].tokens - read) if marks else 0

    def _alive(self, times: dict[str, float], now_s: float) -> set[str]:
        return {prefix for prefix, at in times.items() if now_s - at <= self.lifetime_s}


def estimate_tokens(value: Any) -> int:
    """Tokens of a JSON value without white space, estimated as characters / 4, rounded up."""
    text = value if isinstance(value, str) else _compact(value)
    return -(-len(text) // 4)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def block_tokens(block: dict[str, Any]) -> int:
    """Estimated tokens of one block of a message or of the system prompt, or of a tool."""
    kind = block.get("type")
    if kind == "tool_use":
        return estimate_tokens(block["name"]) + estimate_tokens(block["input"])
    if kind == "tool_result":
        content = block.get("content")
        parts = content if isinstance(content, list) else ()
        images = len([part for part in parts if part.get("type") == "image"])
        return estimate_tokens(content_text(content)) + images * IMAGE_TOKENS
    if kind in ("image", "image_url"):
        return IMAGE_TOKENS
    if kind in ("text", "thinking"):
        return estimate_tokens(block[kind])
    return estimate_tokens({k: v for k, v in block.items() if k not in _UNREAD})


def prompt_tokens(body: dict[str, Any]) -> int:
    """Estimated tokens of a whole request: tools, system prompt and messages."""
    segments = _segments(body)
    return segments[-1].tokens if segments else 0


def _longest(segments: list[_Segment], prefixes: set[str]) -> int:
    return max((s.tokens for s in segments if s.prefix in prefixes), default=0)


def _blocks(body: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The prompt's blocks in the order in which the provider lays them out.

    Each comes with what its message holds beside the content, which counts for equality only.
    """
    for tool in body.get("tools") or ():
        yield tool, {}
    for block in _content_blocks(body.get("system")):
        yield block, {}
    for message in body["messages"]:
        rest = {k: v for k, v in message.items() if k != "content"}
        blocks = _content_blocks(message.get("content"))
        for block in blocks or [{"type": "text", "text": ""}]:
            yield block, rest
        for call in message.get("tool_calls") or ():
            yield call, {"role": message["role"]}


def _content_blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def _segments(body: dict[str, Any]) -> list[_Segment]:
    digest = hashlib.sha256()
    tokens = 0
    segments = []
    for block, rest in _blocks(body):
        text = json.dumps(normalized([block, rest]), sort_keys=True, ensure_ascii=False)
        digest.update(text.encode("utf-8", "surrogatepass"))
        tokens += block_tokens(block)
        segments.append(_Segment(digest.hexdigest(), tokens, "cache_control" in block))
    return segments
