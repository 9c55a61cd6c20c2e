"""Answers on their way to the client, without foredeck's own tools, several joined into one.

A relay serves one request: `begin`, events or a body, `answer` for each answer, then `finish`.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from foredeck.embedded.format import as_json

Data = dict[str, Any]

_END = re.compile(rb"(\n\n|\r\n\r\n)")
"""Of an event of a stream."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One server-sent event; `data` is None if no JSON object."""

    name: str
    data: Data | None
    raw: bytes


class Events:
    """Takes a stream apart."""

    def __init__(self) -> None:
        self._left = b""

    def feed(self, piece: bytes) -> list[StreamEvent]:
        """The events that are complete now."""
        *whole, self._left = _END.split(self._left + piece)
        return [_event(b"".join(pair)) for pair in zip(whole[::2], whole[1::2], strict=True)]

    @property
    def left(self) -> bytes:
        return self._left


def _event(raw: bytes) -> StreamEvent:
    name, texts = "", []
    for line in raw.decode("utf-8", "replace").splitlines():
        field, _, value = line.partition(":")
        if field == "event":
            name = value.strip()
        elif field == "data":
            texts.append(value.removeprefix(" "))
    try:
        data = json.loads("\n".join(texts))
    except ValueError:
        data = None
    return StreamEvent(name, data if isinstance(data, dict) else None, raw)


def encoded(name: str, data: Data) -> bytes:
    """An event as it is sent."""
    head = f"event: {name}\n" if name else ""
    return head.encode() + b"data: " + as_json(data) + b"\n\n"


class Relay(ABC):
    """See the module."""

    def __init__(self) -> None:
        self.own: Set[str] = frozenset()
        """Names of foredeck's tools in this request."""
        self.rounds = 0
        """How many answers have begun."""
        self.answer: Data = {}
        self.ended = False
        """Whether the newest answer is whole."""
        self.held = b""
        """Unsent events, as they came."""
        self.changed = False
        self._bodies: list[Data] = []
        """All whole answers, if nothing is streamed."""
        self._places: dict[int, int | None] = {}
        self._sent = 0
        """How many parts the client was shown."""
        self._met: dict[int, Data] = {}
        self._last_words = b""
        self._pieces: dict[tuple[int, str], list[str]] = {}

    def begin(self) -> None:
        """An answer begins."""
        self.rounds += 1
        self.changed = self.changed or self.rounds > 1
        self.answer, self.ended, self.held = {}, False, b""
        self._places, self._met, self._pieces = {}, {}, {}

    @abstractmethod
    def pass_on(self, event: StreamEvent) -> bytes:
        """What the client is sent of an event."""

    def take_whole(self, body: Data) -> None:
        """Takes the newest answer as a whole; raises for another shape."""
        self.answer = self._message(body)
        self.changed = self.changed or any(map(self._is_own, self._parts(body)))
        self._bodies.append(body)
        self.ended = True

    @property
    def usage(self) -> Data:
        """The provider's count of the newest answer."""
        return dict(self._bodies[-1].get("usage") or {}) if self.ended else {}

    @property
    def shown_usage(self) -> Data:
        """Usage for the client: input of the newest request, and all output."""
        usage: Data = {}
        for body in self._bodies:
            usage = _output_summed(usage, body.get("usage") or {})
        if "total_tokens" in usage:
            names = ("prompt_tokens", "input_tokens", "completion_tokens", "output_tokens")
            usage["total_tokens"] = sum(usage.get(name) or 0 for name in names)
        return usage

    def finish(self) -> bytes:
        """The end of the client's answer."""
        return self._last_words + self._end() if self.changed else self.held

    def give_up(self, text: str) -> None:
        """Ends the client's answer with a text, if the model calls only foredeck's tools."""
        self._last_words = self._say(text)

    @abstractmethod
    def whole(self) -> Data: ...

    @abstractmethod
    def failure(self, text: str) -> bytes:
        """The end of an answer after the provider has failed in it."""

    @abstractmethod
    def _message(self, body: Data) -> Data: ...

    @abstractmethod
    def _parts(self, body: Data) -> Sequence[Data]: ...

    @abstractmethod
    def _is_own(self, part: Data) -> bool: ...

    @abstractmethod
    def _say(self, text: str) -> bytes:
        """Adds a text of foredeck's as the end of the answer."""

    @abstractmethod
    def _end(self) -> bytes: ...

    def _shown(self) -> list[Data]:
        parts = (part for body in self._bodies for part in self._parts(body))
        return [part for part in parts if not self._is_own(part)]

    def _hold(self, event: StreamEvent) -> bytes:
        self.held += event.raw
        return b""

    def _meet(self, number: int, part: Data) -> None:
        self._met[number] = part
        if number not in self._places:
            is_own = self._is_own(part)
            self._places[number] = None if is_own else self._sent
            self._sent += not is_own
            self.changed = self.changed or is_own

    def _met_in_order(self) -> list[Data]:
        return [self._met[number] for number in sorted(self._met)]


_INPUT = ("input", "prompt", "cache")
"""Prefix of figures about one request."""


def _output_summed(one: Mapping[str, Any], other: Mapping[str, Any]) -> Data:
    usage = {**one, **{name: value for name, value in other.items() if value is not None}}
    for name, before in one.items():
        value = other.get(name)
        if name.startswith(_INPUT):
            continue
        if isinstance(value, dict) and isinstance(before, dict):
            usage[name] = _output_summed(before, value)
        elif _is_figure(value) and _is_figure(before):
            usage[name] = before + value
    return usage


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
