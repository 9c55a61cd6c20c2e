"""The conversation as an observer is shown it, and which of its messages are observed next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from foredeck.model.figures import shortened
from foredeck.model.messages import CallOrResult, MessageKind, are_answered, strings_in
from foredeck.model.observations import MessagePart
from foredeck.sources.tool_calls import path_argument

CHARS_PER_TOKEN = 4
"""Only for cutting one message into parts: what is counted has been counted before."""

REQUEST_CHARS = 1000
"""Of the request that a chunk serves, where that was made before it."""


@dataclass(frozen=True, slots=True)
class SourceCall:
    """A tool call inside an answer. `shown`: its arguments in a few words."""

    id: str
    tool: str
    shown: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The file that it is about; empty for none."""
        return path_argument(self.arguments) or ""

    @property
    def texts(self) -> list[str]:
        """All texts of its arguments, in their order."""
        return list(strings_in(self.arguments))


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """One message of the host's, in the order in which the branch has it.

    `tokens`: what it takes in the prompt as the host has it, all of it, by the calibrated count.
    `turn`: the user turn, numbered along the branch. `is_ours`: what foredeck itself has said or
    answered (its summaries, its tools, its memories), of which an observer sees nothing.
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
    """Result: the arguments of that call in a few words."""
    failed: bool = False
    unsent: bool = False
    """Aborted or failed: the host does not send it."""
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class ChunkRules:
    """How long a chunk is, in tokens.

    least   of the messages of a chunk
    most    that an observer is shown of one, so that its prompt is bounded
    result  that it is shown of each result
    calls   the share of a chunk's tokens that may go to what calls write, in its excerpt
    """

    least: int = 6000
    most: int = 24_000
    result: int = 150
    calls: float = 0.4


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive messages to be observed at once.

    `part`: the piece that is observed of its first message, where that is longer than a chunk may
    be; only the last piece is followed by more messages. `tokens`: of its messages in the prompt, a
    part's in proportion. `request`: what the user asked for last before it, where nothing in it is
    the user's; `task`: what was noted before it as the task.
    """

    messages: tuple[SourceMessage, ...]
    part: MessagePart | None
    tokens: int
    request: str = ""
    task: str = ""

    @property
    def covers(self) -> list[str]:
        """Addresses of the messages that are observed to their end with it."""
        whole = self.messages
        if self.part is not None and self.part.end < self.part.length:
            whole = tuple(m for m in whole if m.address != self.part.address)
        return [message.address for message in whole]

    def text_of(self, message: SourceMessage) -> str:
        """What of a message's text is observed."""
        part = self.part
        if part is None or part.address != message.address:
            return message.text
        return message.text[part.start : part.end]


@dataclass(frozen=True, slots=True)
class Position:
    """How far a branch is observed: whole messages, and characters of the next one."""

    messages: int = 0
    chars: int = 0


def pending_tokens(messages: Sequence[SourceMessage], position: Position) -> int:
    """Tokens that are not observed yet, each counted once."""
    rest = tokens_of(messages[position.messages :])
    if not position.chars or position.messages >= len(messages):
        return rest
    first = messages[position.messages]
    return rest - first.tokens * position.chars // max(1, len(first.text))


def shown_tokens(message: SourceMessage, rules: ChunkRules) -> int:
    """Tokens that an observer is shown of a message: user and assistant text whole, of a result
    the beginning and the end."""
    if message.is_ours or message.unsent or message.kind == "opaque":
        return 0
    return min(message.tokens, rules.result) if message.kind == "result" else message.tokens


def tokens_of(messages: Iterable[SourceMessage]) -> int:
    """Tokens of all of them."""
    return sum(message.tokens for message in messages)


def ends_of_batches(messages: Sequence[CallOrResult]) -> list[int]:
    """Where a chunk may end: indexes `n` such that every call in `messages[:n]` has its result
    there, and the last message is a result or an answer."""
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
    """The oldest span that is not observed, as long as it may be; None where there is none.

    `least`: tokens that must wait, in place of `rules.least`: 1 where the user asks. A chunk
    whose price is not affordable is not returned. It waits, and is longer the next time.
    """
    if position.messages >= len(messages):
        return None
    chunk = _part(messages, position, rules) or _whole_messages(messages, position, rules)
    if chunk is None:
        return None
    chunk = replace(chunk, request=_request(messages[: position.messages], chunk))
    wanted = rules.least if least is None else least
    is_long_enough = chunk.tokens >= wanted or chunk.part is not None
    return chunk if is_long_enough and is_affordable(chunk) else None


def _request(before: Sequence[SourceMessage], chunk: Chunk) -> str:
    """What the user asked for last, where the chunk does not hold it."""
    if any(message.kind == "user" for message in chunk.messages):
        return ""
    asked = (message.text for message in reversed(before) if message.kind == "user")
    return shortened(next(asked, ""), REQUEST_CHARS)


def _whole_messages(
    messages: Sequence[SourceMessage], position: Position, rules: ChunkRules
) -> Chunk | None:
    """Whole messages up to the last end of a batch that the bound allows."""
    # A batch that is longer by itself than an observer may be shown is taken whole: of results it
    # sees a little, and longer texts are cut into parts. One of these ends the span before it.
    start, end = position.messages, None
    for candidate in _ends(messages, start, rules):
        shown = sum(shown_tokens(m, rules) for m in messages[start:candidate])
        if end is not None and shown > rules.most:
            break
        end = candidate
    if end is None:
        return None
    found = tuple(messages[start:end])
    return Chunk(found, None, tokens_of(found))


def _ends(messages: Sequence[SourceMessage], start: int, rules: ChunkRules) -> list[int]:
    """Where a chunk may end that begins at `start`: never after a message that is under way."""
    # Also before a message that is cut into parts: the calls are in that message, so none is
    # separated from its result.
    ends = [end for end in ends_of_batches(messages) if end > start]
    last = ends[-1] if ends else start
    huge = next((i for i in range(start + 1, last) if _is_huge(messages[i], rules)), None)
    return ends if huge is None else [*(end for end in ends if end < huge), huge]


def _part(messages: Sequence[SourceMessage], position: Position, rules: ChunkRules) -> Chunk | None:
    """A piece of the next message, where that is too long to be observed at once. Its results, or
    its answer, belong to the last piece."""
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
    """Characters of this message that fill a chunk."""
    rate = len(message.text) / message.tokens if message.tokens else CHARS_PER_TOKEN
    return max(1, int(rules.most * rate))
