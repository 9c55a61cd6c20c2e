"""Puts calls of foredeck's own tools back into a client's list, else its provider's cache finds
nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import count
from typing import Any

Message = dict[str, Any]
Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Woven:
    message: Message
    place: int


def own_calls(message: Mapping[str, Any], own: Set[str]) -> list[Block]:
    """The calls of foredeck's tools in an answer. `own`: their names."""
    return [block for block in _blocks(message) if _is_own(block, own)]


def first_call(message: Mapping[str, Any], own: Set[str]) -> str:
    """The first of the client's calls in an answer; may be empty."""
    calls = (b for b in _visible(message, own) if b.get("type") == "toolCall")
    return str(next(calls, {}).get("id") or "")


def _visible(message: Mapping[str, Any], own: Set[str]) -> list[Block]:
    return [block for block in _blocks(message) if not _is_own(block, own)]


@dataclass(slots=True)
class Weaver:
    """Makes the client's list whole again, once."""

    listed: list[tuple[Message, int]]
    known: Sequence[Message]
    held: Mapping[str, Sequence[Message]]
    """Answers that called both kinds of tools, with foredeck's results, by the client's first
    call."""
    same: Callable[[Message, Message], bool]
    """Whether two messages of the client's are the same."""
    own: Set[str]
    """Names of foredeck's tools."""
    together: bool
    """One message holds an answer's results."""
    _found: list[Woven] = field(default_factory=list)
    _ours: Iterator[int] = field(default_factory=lambda: count(-1, -1))
    _next: int = 0
    """Index in `known`; beyond its end once the lists differ."""

    def run(self) -> list[Woven]:
        """The client's list with the calls that it lacks."""
        while True:
            # Several may follow each other: the model has called foredeck's tools again and again.
            if self._hidden():
                continue
            if not self.listed:
                return self._found
            message, place = self.listed.pop(0)
            if (known := self._whole(message)) is not None:
                self._answered(message, place, known)
            else:
                known = self._peek()
                self._found.append(Woven(message, place))
                is_same = known is not None and self.same(message, known)
                self._next = self._next + 1 if is_same else len(self.known)

    def _whole(self, message: Message) -> Message | None:
        """The next known answer, if it is this one with foredeck's calls."""
        called, known = first_call(message, self.own), self._peek()
        if called in self.held and (known is None or first_call(known, self.own) != called):
            self.known = [*self.known[: self._next], *self.held[called]]
            known = self._peek()
        if not called or known is None or first_call(known, self.own) != called:
            return None
        return known if own_calls(known, self.own) else None

    def _peek(self) -> Message | None:
        return self.known[self._next] if self._next < len(self.known) else None

    def _hidden(self) -> bool:
        known, own = self._peek(), self.own
        if known is None or not own_calls(known, own) or first_call(known, own):
            return False
        shown = _visible(known, own)
        if shown:
            if not self.listed or self.listed[0][0].get("role") != "assistant":
                return False
            message, place = self.listed[0]
            rest = _rest(_blocks(message), shown)
            if rest is None:
                return False
            self.listed[0] = ({**message, "content": rest}, place)
            if not rest:
                self.listed.pop(0)
        self._found.append(Woven(known, next(self._ours)))
        self._next += 1
        ids = {block["id"] for block in own_calls(known, self.own)}
        place = next(self._ours)
        while self._next < len(self.known) and self.known[self._next].get("toolCallId") in ids:
            self._found.append(Woven(self.known[self._next], place))
            place = place if self.together else next(self._ours)
            self._next += 1
        return True

    def _own_results(self, known: Message) -> list[Message]:
        ids = {block["id"] for block in own_calls(known, self.own)}
        first = self._next = self._next + 1
        while (result := self._peek()) is not None and result.get("role") == "toolResult":
            self._next += 1
        passed = self.known[first : self._next]
        return [result for result in passed if result.get("toolCallId") in ids]

    def _answered(self, message: Message, place: int, known: Message) -> None:
        """Adds the client's answer with foredeck's calls, and all results in order."""
        own = [*_blocks(message)]
        content: list[Block] = []
        for block in _blocks(known):
            if _is_own(block, self.own):
                content.append(block)
            elif own:
                content.append(own.pop(0))
        content += own
        self._found.append(Woven({**message, "content": content}, place))
        client: list[Woven] = []
        while self.listed and self.listed[0][0].get("role") == "toolResult":
            client.append(Woven(*self.listed.pop(0)))
        neighbour = client[0].place if client and self.together else None
        ours = [
            Woven(result, next(self._ours) if neighbour is None else neighbour)
            for result in self._own_results(known)
        ]
        order = [block.get("id") for block in content if block.get("type") == "toolCall"]
        both = {woven.message.get("toolCallId"): woven for woven in (*client, *ours)}
        self._found += [both.pop(id) for id in order if id in both]
        self._found += both.values()


def _rest(blocks: Sequence[Block], shown: Sequence[Block]) -> list[Block] | None:
    """What is left of an answer behind an earlier one's; None if it does not begin with that."""
    left = [dict(block) for block in blocks]
    for block in shown:
        # Clients leave out texts of blanks alone, which the API refuses in a request.
        if block.get("type") == "text" and not str(block.get("text") or "").strip():
            continue
        if not left or left[0].get("type") != block.get("type"):
            return None
        kind = "thinkingSignature" if block.get("thinkingSignature") else str(block["type"])
        mine, theirs = str(left[0].get(kind) or ""), str(block.get(kind) or "")
        if mine.strip() == theirs.strip():
            left.pop(0)
        elif kind == "text" and mine.startswith(theirs.rstrip()):
            left[0]["text"] = mine.removeprefix(theirs.rstrip()).lstrip("\n")
        else:
            return None
    return left


def _is_own(block: Mapping[str, Any], own: Set[str]) -> bool:
    return block.get("type") == "toolCall" and block.get("name") in own


def _blocks(message: Mapping[str, Any]) -> list[Block]:
    content = message.get("content")
    return content if message.get("role") == "assistant" and isinstance(content, list) else []
