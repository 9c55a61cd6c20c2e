"""Answers on their way to the client: what concerns foredeck's own tools is left out, and where the
model was asked again, several answers become one.

A relay serves one request of the client's. Each answer begins with `begin`, its events (or, where
nothing is streamed, its whole body) pass through, and `answer` is then what the model has said, as
a message. `finish` ends the client's answer. `Events` takes a stream of server-sent events apart.
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
    """One server-sent event: its name, empty for none, its data as JSON, and its bytes as they
    came. `data` is None where that is no JSON object."""

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
        """What has come of an event that never ended."""
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
        """What the client has not been sent yet of it, as it came."""
        self.changed = False
        """Whether anything was left out or put together."""
        self._bodies: list[Data] = []
        """All whole answers, as the API has them where nothing is streamed."""
        self._places: dict[int, int | None] = {}
        """By the number of a part of the answer: that which the client knows it by; None for one
        that the client is not shown."""
        self._sent = 0
        """How many parts the client was shown."""
        self._met: dict[int, Data] = {}
        """The parts of the newest answer by their numbers, as far as they have come."""
        self._last_words = b""
        """The events of a text of foredeck's, before the end."""
        self._pieces: dict[tuple[int, str], list[str]] = {}
        """The texts that come bit by bit: by part and member."""

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
        """The newest answer, all of it. Raises for one in another shape than the API's."""
        self.answer = self._message(body)
        self.changed = self.changed or any(map(self._is_own, self._parts(body)))
        self._bodies.append(body)
        self.ended = True

    @property
    def usage(self) -> Data:
        """What the provider has counted of the newest answer."""
        return dict(self._bodies[-1].get("usage") or {}) if self.ended else {}

    @property
    def shown_usage(self) -> Data:
        """What the client is told: the input of the newest request, by which it judges how full its
        window is, and the output of all answers."""
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
        """Let the client's answer end with a text, where the model calls foredeck's tools alone."""
        self._last_words = self._say(text)

    @abstractmethod
    def whole(self) -> Data:
        """All answers as one that is not streamed."""

    @abstractmethod
    def failure(self, text: str) -> bytes:
        """The end of the client's answer where the provider has failed in the middle of it."""

    @abstractmethod
    def _message(self, body: Data) -> Data:
        """What the model has said in an answer."""

    @abstractmethod
    def _parts(self, body: Data) -> Sequence[Data]:
        """The parts of an answer that may be calls of tools."""

    @abstractmethod
    def _is_own(self, part: Data) -> bool:
        """Whether a part is a call of one of foredeck's tools."""

    @abstractmethod
    def _say(self, text: str) -> bytes:
        """Put a text of foredeck's behind what the model has said, as the end of the answer; its
        events."""

    @abstractmethod
    def _end(self) -> bytes:
        """The end of an answer that was changed."""

    def _shown(self) -> list[Data]:
        """The parts of all answers that the client is shown."""
        parts = (part for body in self._bodies for part in self._parts(body))
        return [part for part in parts if not self._is_own(part)]

    def _hold(self, event: StreamEvent) -> bytes:
        self.held += event.raw
        return b""

    def _meet(self, number: int, part: Data) -> None:
        """A part of the newest answer has come, or more of it."""
        self._met[number] = part
        if number not in self._places:
            is_own = self._is_own(part)
            self._places[number] = None if is_own else self._sent
            self._sent += not is_own
            self.changed = self.changed or is_own

    def _met_in_order(self) -> list[Data]:
        return [self._met[number] for number in sorted(self._met)]


_INPUT = ("input", "prompt", "cache")
"""How names of figures begin that are of one request, not of the answers to it."""


def _output_summed(one: Mapping[str, Any], other: Mapping[str, Any]) -> Data:
    """The later figures, those of output added up, those within figures too."""
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
