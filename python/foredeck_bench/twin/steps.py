"""What a scripted model does: the steps of a script.

A script is a list of steps, one per request, or one function that is asked each time. A step is

- text (`"done"`), a block (`Text`, `Thinking`, `ToolCall`) or a list of blocks: one reply;
- a `Reply`, where the reply needs a stop reason, a delay, or a connection cut in the middle;
- a `Failure`: an error status of the provider;
- a function of the `ModelRequest` that returns one of these. It may look for handles in the
  prompt, and it may block: each request has a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foredeck_bench.twin.request import ModelRequest


@dataclass(frozen=True, slots=True)
class Text:
    """A text block."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """The server signs it; `redacted` sends an opaque payload."""

    text: str
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class SealedSummary:
    """OpenAI's answer to a `compaction_trigger`."""

    payload: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call. Without an `id` the server gives a fresh one."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None


Block = Text | Thinking | SealedSummary | ToolCall


@dataclass(frozen=True, slots=True)
class Reply:
    """One assistant message.

    `stop` in Anthropic's terms; `cut` drops the connection about halfway.
    """

    blocks: tuple[Block, ...]
    stop: str | None = None
    delay_s: float = 0.0
    cut: bool = False

    @property
    def stop_reason(self) -> str:
        """`stop`, or what follows from the blocks."""
        if self.stop is not None:
            return self.stop
        return "tool_use" if any(isinstance(b, ToolCall) for b in self.blocks) else "end_turn"


@dataclass(frozen=True, slots=True)
class Failure:
    """An error answer; `kind` is the provider's error type, `code` Anthropic's `error_code`."""

    status: int
    kind: str
    message: str
    retry_after_s: int | None = None
    code: str | None = None


StepOutcome = Reply | Failure
StepResult = StepOutcome | Block | str | Sequence[Block]
Step = StepResult | Callable[["ModelRequest"], StepResult]
Script = Sequence[Step] | Callable[["ModelRequest"], StepResult]


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(name, arguments)


def overflow(tokens: int, window: int) -> Failure:
    """The 400 with which Anthropic refuses a prompt longer than the window."""
    return Failure(
        400, "invalid_request_error", f"prompt is too long: {tokens} tokens > {window} maximum"
    )


def unverified(name: str) -> Failure:
    """The 400 with which OpenAI refuses encrypted reasoning that it cannot make sense of."""
    return Failure(
        400,
        "invalid_request_error",
        f"The encrypted content for item rs_{name} could not be verified. Reason: Encrypted "
        "content could not be decrypted or parsed.",
    )


def as_outcome(result: StepResult) -> StepOutcome:
    """A short form as the reply that it stands for."""
    if isinstance(result, Reply | Failure):
        return result
    if isinstance(result, str):
        return Reply((Text(result),))
    if isinstance(result, Text | Thinking | SealedSummary | ToolCall):
        return Reply((result,))
    return Reply(tuple(result))
