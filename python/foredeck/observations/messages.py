"""The conversation as an observer is shown it: messages by address, with their tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.model.messages import CallOrResult, MessageKind, are_answered, strings_in
from foredeck.sources.tool_calls import path_argument


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
    void: bool = False
    """Aborted or failed: the host does not send it."""
    is_ours: bool = False


def tokens_of(messages: Iterable[SourceMessage]) -> int:
    """Tokens of all of them."""
    return sum(message.tokens for message in messages)


def ends_of_batches(messages: Sequence[CallOrResult]) -> list[int]:
    """Where a chunk may end: indexes `n` such that every call in `messages[:n]` has its result
    there, and the last message is a result or an answer. So a question stays with its answer.
    """
    ends: list[int] = []
    for index, is_answered in enumerate(are_answered(messages)):
        follows = messages[index + 1].kind if index + 1 < len(messages) else "assistant"
        if is_answered and messages[index].kind in ("assistant", "result") and follows != "result":
            ends.append(index + 1)
    return ends
