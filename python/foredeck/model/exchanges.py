"""Exchanges: which result answers which call, in a list of messages.

A host's list may have holes, which `context/plan/repairs.py` closes. What a result's call asked
for is in `Item.arguments`, which the plan fills in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Protocol

MessageKind = Literal["user", "assistant", "result", "context", "opaque"]
"""`context`: text of other origin that the model sees as a user's (summaries, notes of other
extensions). `opaque`: a message whose content is not ours to edit, or that the model never sees."""


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


class CallOrResult(Protocol):
    """A message that may hold calls, or the result of one."""

    @property
    def kind(self) -> MessageKind: ...
    @property
    def calls(self) -> Sequence[_HasId]: ...
    @property
    def call_id(self) -> str: ...
    @property
    def void(self) -> bool: ...


def are_answered(messages: Iterable[CallOrResult]) -> Iterator[bool]:
    """After each message: whether every call so far has its result."""
    open_calls: set[str] = set()
    for message in messages:
        if message.kind == "assistant" and not message.void:
            open_calls.update(call.id for call in message.calls)
        elif message.kind == "result":
            open_calls.discard(message.call_id)
        elif message.kind == "user":
            # The host has let go of calls that a new question finds open: it was interrupted.
            open_calls.clear()
        yield not open_calls


def newest_answer(items: Sequence[CallOrResult], before: int, *, sent: bool = False) -> int:
    """The newest answer before a place, -1 where there is none. `sent`: one that the host sends,
    neither aborted nor failed."""
    for index in range(before - 1, -1, -1):
        if items[index].kind == "assistant" and not (sent and items[index].void):
            return index
    return -1


def exchanges(items: Sequence[CallOrResult], first: int, until: int) -> Iterator[list[int]]:
    """Each message of a span with the results that follow it, as places: of an answer those of its
    calls, of any other message none. What no model sees is left out."""
    group: list[int] = []
    for index in range(first, until):
        kind = items[index].kind
        if kind not in ("result", "opaque") and group:
            yield group
            group = []
        if kind != "opaque":
            group.append(index)
    if group:
        yield group


def exchange_of(items: Sequence[CallOrResult], index: int) -> list[int]:
    """The exchange of a result: its answer, then all results. Empty for any other message, and for
    a result that answers no call before it."""
    first = newest_answer(items, index)
    if items[index].kind != "result" or first < 0:
        return []
    if all(call.id != items[index].call_id for call in items[first].calls):
        return []
    group = next(exchanges(items, first, len(items)))
    return group if index in group else []
