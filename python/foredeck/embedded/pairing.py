"""Which result answers which call, where ids do not say.

Inside, each call of an answer has an id of its own; outside, nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from foredeck.embedded.format import Message, blocks_of
from foredeck.model.messages import answered_by


@dataclass(slots=True)
class _Call:
    given: str
    own: str
    tool: str


@dataclass(slots=True)
class _Answer:
    """An answer with calls. `end`: where its results end; `strays`: results that name no call."""

    end: int
    open: list[_Call]
    strays: int = 0
    is_last: bool = True


@dataclass(slots=True)
class Pairing:
    """Gives calls and results ids of their own where these are missing or repeated, and puts a
    result behind its call."""

    named: list[tuple[int, int, str, str]] = field(default_factory=list)
    """Results under their call's id: place in the loop's list, how many precede, that id, and the
    call's."""
    given: dict[str, str] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    _answers: list[_Answer] = field(default_factory=list)
    """Since the user has spoken."""

    def own(self, made: Sequence[tuple[Message, int]]) -> list[tuple[Message, int]]:
        """The messages with these ids, each with its place in the loop's list."""
        self.named.clear()
        self.given.clear()
        self.results.clear()
        self._answers.clear()
        pairs: list[tuple[Message, int]] = []
        for number, (message, place) in enumerate(made):
            if message["role"] == "toolResult":
                id, message = message["toolCallId"], self._named(message, made, number)
                if message["toolCallId"] != id:
                    same = [m for m, at in made[:number] if at == place]
                    nth = sum(m.get("toolCallId") == id for m in same)
                    self.named.append((place, nth, str(id), message["toolCallId"]))
            if message["role"] == "assistant":
                message, calls = self._answer(message, place)
                self._answers.append(_Answer(len(pairs) + 1, calls))
            elif message["role"] == "toolResult" and (at := self._answered(message)) is not None:
                answers = self._answers[at:]
                pairs.insert(answers[0].end, (self._result(message, answers[0]), place))
                for answer in answers:
                    answer.end += 1
                continue
            elif message["role"] == "user":
                del self._answers[:-1]
            if message["role"] not in ("assistant", "toolResult") and self._answers:
                self._answers[-1].is_last = False
            pairs.append((message, place))
        return pairs

    def _answer(self, message: Message, place: int) -> tuple[Message, list[_Call]]:
        content: list[dict[str, Any]] = []
        calls: list[_Call] = []
        for number, block in enumerate(blocks_of(message)):
            if block.get("type") == "toolCall":
                call_id = str(block.get("id") or "")
                is_new = call_id and all(call.own != call_id for call in calls)
                own = call_id if is_new else f"{call_id or 'call'}-{place}.{number}"
                if own != call_id:
                    self.given[own] = call_id
                    block = {**block, "id": own}
                calls.append(_Call(call_id, own, str(block.get("name") or "")))
            content.append(block)
        is_same = all(call.own == call.given for call in calls)
        return (message if is_same else {**message, "content": content}), calls

    def _named(self, message: Message, made: Sequence[tuple[Message, int]], number: int) -> Message:
        """A result under its call's id, if no other can be meant."""
        answer = self._answers[-1] if self._answers else None
        if answer is None or not answer.is_last or self._answered(message) is not None:
            return message
        answer.strays += 1
        if answer.strays > 1:
            return message
        # Those whose results come later, maybe behind other things.
        behind = [m for m, _ in made[number + 1 :]]
        later = [str(m.get("toolCallId") or "") for m in behind if m["role"] == "toolResult"]
        unanswered = [call for call in answer.open if call.given not in later]
        others = takewhile(lambda m: m["role"] == "toolResult", behind)
        strays = answer.strays + sum(self._answered(m) is None for m in others)
        if len(unanswered) != 1 or strays != 1 or not unanswered[0].given:
            return message
        return {**message, "toolCallId": unanswered[0].given, "toolName": unanswered[0].tool}

    def _answered(self, message: Message) -> int | None:
        id = str(message.get("toolCallId") or "")
        newest = len(self._answers) - 1
        for at in range(newest, -1, -1):
            if any(call.given == id for call in self._answers[at].open if id or at == newest):
                return at
        is_newest = newest >= 0 and _at(self._answers[newest].open, id) is not None
        return newest if is_newest else None

    def _result(self, message: Message, answer: _Answer) -> Message:
        id = str(message.get("toolCallId") or "")
        at = _at(answer.open, id)
        assert at is not None  # `_answered` has said so
        call = answer.open.pop(at)
        if call.own == id:
            return message
        self.results[call.own] = id
        return {**message, "toolCallId": call.own, "toolName": call.tool or message["toolName"]}

    def outside(self, message: Message) -> Message:
        id = message.get("toolCallId")
        if id in self.results or id in self.given:
            # What foredeck says of a call without a result has the call's id.
            return {**message, "toolCallId": self.results.get(id, self.given.get(id))}
        blocks = message.get("content")
        if message.get("role") != "assistant" or not isinstance(blocks, list):
            return message
        content = [
            {**block, "id": self.given[id]}
            if isinstance(id := block.get("id"), str) and id in self.given
            else block
            for block in blocks
        ]
        return message if content == blocks else {**message, "content": content}


_RESULT_IDS = ("tool_use_id", "tool_call_id", "call_id")


def with_result_id(message: Mapping[str, Any], nth: int, given: str, own: str) -> Message:
    """The nth of a message's results with this id, under another."""
    copy: Message = deepcopy(dict(message))
    # OpenAI's responses are gathered in one.
    lists = (copy.get(name) for name in ("content", "items"))
    parts = [part for listed in lists if isinstance(listed, list) for part in listed]
    places = [
        (holder, name)
        for holder in (copy, *parts)
        for name in _RESULT_IDS
        if isinstance(holder, dict) and name in holder and str(holder[name]) == given
    ]
    holder, name = places[nth]
    holder[name] = own
    return copy


def _at(calls: Sequence[_Call], result: str) -> int | None:
    at = answered_by([call.given for call in calls], result)
    numbers = (number for number, call in enumerate(calls) if call.tool == result != "")
    return next(numbers, None) if at is None else at
