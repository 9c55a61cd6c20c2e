"""Which result answers which call, also where their ids do not say: some servers number no calls,
or several alike, and some clients lose the numbers.

Inside, each call of an answer has an id of its own; outside, nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.embedded.format import Message, blocks_of
from foredeck.model.messages import answered_by


@dataclass(slots=True)
class _Call:
    """A call that waits for its result: the id that the loop has, its own, and the tool."""

    given: str
    own: str
    tool: str


@dataclass(slots=True)
class _Answer:
    """An answer with calls. `end`: where in the list its results end."""

    end: int
    open: list[_Call]


@dataclass(slots=True)
class Pairing:
    """Gives calls that have no id, or one that another call of their answer has, ids of their own,
    and their results the same; and puts a result behind its call where something stands between,
    which no provider takes. `given`, `results`: by such an id, what the loop's call and its result
    have."""

    given: dict[str, str] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    _answers: list[_Answer] = field(default_factory=list)
    """Since the user has spoken, with those before that in the end."""

    def own(self, made: Sequence[tuple[Message, int]]) -> list[tuple[Message, int]]:
        """The messages with these ids; the same objects where nothing changes. With each comes its
        place in the loop's list."""
        self.given.clear()
        self.results.clear()
        self._answers.clear()
        found: list[tuple[Message, int]] = []
        for message, place in made:
            if message["role"] == "assistant":
                message, calls = self._answer(message, place)
                self._answers.append(_Answer(len(found) + 1, calls))
            elif message["role"] == "toolResult" and (at := self._answered(message)) is not None:
                answers = self._answers[at:]
                found.insert(answers[0].end, (self._result(message, answers[0]), place))
                for answer in answers:
                    answer.end += 1
                continue
            elif message["role"] == "user":
                del self._answers[:-1]
            found.append((message, place))
        return found

    def _answer(self, message: Message, place: int) -> tuple[Message, list[_Call]]:
        content: list[dict[str, Any]] = []
        calls: list[_Call] = []
        for number, block in enumerate(blocks_of(message)):
            if block.get("type") == "toolCall":
                given = str(block.get("id") or "")
                is_new = given and all(call.own != given for call in calls)
                own = given if is_new else f"{given or 'call'}-{place}.{number}"
                if own != given:
                    self.given[own] = given
                    block = {**block, "id": own}
                calls.append(_Call(given, own, str(block.get("name") or "")))
            content.append(block)
        is_same = all(call.own == call.given for call in calls)
        return (message if is_same else {**message, "content": content}), calls

    def _answered(self, message: Message) -> int | None:
        """Which answer a result belongs to."""
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
        """A message with the ids that the loop has."""
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


def _at(calls: Sequence[_Call], result: str) -> int | None:
    """Which of these calls a result answers. One of an API before tools names the tool."""
    at = answered_by([call.given for call in calls], result)
    named = (number for number, call in enumerate(calls) if call.tool == result != "")
    return next(named, None) if at is None else at
