"""The conversation as an observer sees it, and which messages come next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from foredeck.model.figures import shortened
from foredeck.model.messages import CallOrResult, MessageKind, are_answered, strings_in
from foredeck.model.observations import MessagePart
from foredeck.sources.tool_calls import path_argument

CHARS_PER_TOKEN = 4
"""Only for cutting messages into parts."""

REQUEST_CHARS = 1000
"""Of the request that a chunk serves."""


@dataclass(frozen=True, slots=True)
class SourceCall:
    """A tool call inside an answer. `shown`: its arguments in short."""

    id: str
    tool: str
    shown: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The file that it concerns; empty for none."""
        return path_argument(self.arguments) or ""

    @property
    def texts(self) -> list[str]:
        """All texts of its arguments, in order."""
        return list(strings_in(self.arguments))


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """A host message, in branch order.

    `tokens`: of the whole message. `is_ours`: hidden from observers.
    """

    address: str
    kind: MessageKind
    text: str = ""
    tokens: int = 0
    time_ms: int = 0
    turn: int = 0
    calls: tuple[SourceCall, ...] = ()
    call_id: str = ""
    """Result: the call that it answers."""
    tool: str = ""
    shown: str = ""
    """Result: the call's arguments in short."""
    failed: bool = False
    unsent: bool = False
    """Aborted or failed, so not sent."""
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class ChunkRules:
    """How long a chunk is, in tokens.

    `most`: shown to an observer; `result`: shown of each result; `calls`: share for what calls
    write.
    """

    least: int = 6000
    most: int = 24_000
    result: int = 150
    calls: float = 0.4


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive messages to observe at once.

    `part`: the observed piece of an overlong first message.
    """

    messages: tuple[SourceMessage, ...]
    part: MessagePart | None
    tokens: int
    request: str = ""
    task: str = ""

    @property
    def covers(self) -> list[str]:
        whole = self.messages
        if self.part is not None and self.part.end < self.part.length:
            whole = tuple(m for m in whole if m.address != self.part.address)
        return [message.address for message in whole]

    def text_of(self, message: SourceMessage) -> str:
        """The observed text of a message."""
        part = self.part
        if part is None or part.address != message.address:
            return message.text
        return message.text[part.start : part.end]


@dataclass(frozen=True, slots=True)
class Position:
    """How far a branch is observed: whole messages, and characters of the next."""

    messages: int = 0
    chars: int = 0


def pending_tokens(messages: Sequence[SourceMessage], position: Position) -> int:
    """Unobserved tokens."""
    rest = tokens_of(messages[position.messages :])
    if not position.chars or position.messages >= len(messages):
        return rest
    first = messages[position.messages]
    return rest - first.tokens * position.chars // max(1, len(first.text))


def shown_tokens(message: SourceMessage, rules: ChunkRules) -> int:
    """Tokens of a message as an observer sees it."""
    if message.is_ours or message.unsent or message.kind == "opaque":
        return 0
    return min(message.tokens, rules.result) if message.kind == "result" else message.tokens


def tokens_of(messages: Iterable[SourceMessage]) -> int:
    return sum(message.tokens for message in messages)


def ends_of_batches(messages: Sequence[CallOrResult]) -> list[int]:
    """Indexes where a chunk may end: all calls before have results."""
    # So a question stays with its answer, and a call with its result.
    ends: list[int] = []
    for index, is_answered in enumerate(are_answered(messages)):
        follows = messages[index + 1].kind if index + 1 < len(messages) else "assistant"
        if is_answered and messages[index].kind in ("assistant", "result") and follows != "result":
            ends.append(index + 1)
    return ends


def next_chunk(
    messages: Sequence[SourceMessage],
    position: Position,
    rules: ChunkRules,
    is_affordable: Callable[[Chunk], bool] = lambda _chunk: True,
    *,
    least: int | None = None,
) -> Chunk | None:
    """The longest allowed chunk of the oldest unobserved messages, if any.

    `least` replaces `rules.least`. An unaffordable chunk waits, and grows.
    """
    if position.messages >= len(messages):
        return None
    chunk = _part(messages, position, rules) or _whole_messages(messages, position, rules)
    if chunk is None:
        return None
    chunk = replace(chunk, request=_request(messages[: position.messages], chunk))
    minimum = rules.least if least is None else least
    is_long_enough = chunk.tokens >= minimum or chunk.part is not None
    return chunk if is_long_enough and is_affordable(chunk) else None


def _request(before: Sequence[SourceMessage], chunk: Chunk) -> str:
    """The user's last request, unless the chunk has one."""
    if any(message.kind == "user" for message in chunk.messages):
        return ""
    requests = (message.text for message in reversed(before) if message.kind == "user")
    return shortened(next(requests, ""), REQUEST_CHARS)


def _whole_messages(
    messages: Sequence[SourceMessage], position: Position, rules: ChunkRules
) -> Chunk | None:
    # A batch that is longer by itself than an observer may be shown is taken whole: of results it
    # sees a little, and longer texts are cut into parts. One of these ends the span before it.
    start, end = position.messages, None
    for candidate in _ends(messages, start, rules):
        size = sum(shown_tokens(m, rules) for m in messages[start:candidate])
        if end is not None and size > rules.most:
            break
        end = candidate
    if end is None:
        return None
    selection = tuple(messages[start:end])
    return Chunk(selection, None, tokens_of(selection))


def _ends(messages: Sequence[SourceMessage], start: int, rules: ChunkRules) -> list[int]:
    """Where a chunk from `start` may end: never after an unfinished message."""
    # Also before a message that is cut into parts: the calls are in that message, so none is
    # separated from its result.
    ends = [end for end in ends_of_batches(messages) if end > start]
    last = ends[-1] if ends else start
    huge = next((i for i in range(start + 1, last) if _is_huge(messages[i], rules)), None)
    return ends if huge is None else [*(end for end in ends if end < huge), huge]


def _part(messages: Sequence[SourceMessage], position: Position, rules: ChunkRules) -> Chunk | None:
    start, message = position.messages, messages[position.messages]
    ends = _ends(messages, start, rules)
    if not _is_huge(message, rules) or not ends:
        return None
    length = len(message.text)
    end = min(length, position.chars + _part_chars(message, rules))
    part = MessagePart(address=message.address, start=position.chars, end=end, length=length)
    tokens = message.tokens * (end - position.chars) // max(1, length)
    if end < length:
        return Chunk((message,), part, tokens)
    rest = tuple(messages[start + 1 : ends[0]])
    return Chunk((message, *rest), part, tokens + tokens_of(rest))


def _is_huge(message: SourceMessage, rules: ChunkRules) -> bool:
    return shown_tokens(message, rules) > rules.most and len(message.text) > _part_chars(
        message, rules
    )


def _part_chars(message: SourceMessage, rules: ChunkRules) -> int:
    rate = len(message.text) / message.tokens if message.tokens else CHARS_PER_TOKEN
    return max(1, int(rules.most * rate))
