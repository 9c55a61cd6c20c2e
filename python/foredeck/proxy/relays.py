"""Answers on their way to the client: what concerns foredeck's own tools is left out, and where the
model was asked again, several answers become one.

A relay serves one request of the client's. Each answer begins with `begin`, its events (or, where
nothing is streamed, its whole body) pass through, and `answer` is then what the model has said, as
a message. `finish` ends the client's answer, with the sum of what was used.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from typing import Any

from foredeck.proxy.events import Data, StreamEvent, encoded


class Relay(ABC):
    """See the module."""

    def __init__(self) -> None:
        self.own: Set[str] = frozenset()
        """Names of foredeck's tools in this request."""
        self.rounds = 0
        """How many answers have begun."""
        self.answer: Data = {}
        self.usage: Data = {}
        """What the provider has counted of the newest answer."""
        self.ended = False
        """Whether the newest answer is whole."""
        self.held = b""
        """What the client has not been sent yet of it, as it came."""
        self.changed = False
        """Whether anything was left out or put together."""
        self._used: Data = {}
        """Of all answers but the newest."""

    def begin(self) -> None:
        """An answer begins."""
        self._used = _summed(self._used, self.usage)
        self.rounds += 1
        self.changed = self.changed or self.rounds > 1
        self.answer, self.usage, self.ended, self.held = {}, {}, False, b""

    def _hold(self, event: StreamEvent) -> bytes:
        self.held += event.raw
        return b""

    @property
    def total(self) -> Data:
        """What all answers have used."""
        return _summed(self._used, self.usage)

    @abstractmethod
    def pass_on(self, event: StreamEvent) -> bytes:
        """What the client is sent of an event."""

    @abstractmethod
    def finish(self) -> bytes:
        """The end of the client's answer."""

    @abstractmethod
    def take_whole(self, body: Data) -> None:
        """An answer that is not streamed."""

    @abstractmethod
    def whole(self) -> Data:
        """What the client is sent then, of all answers."""

    @abstractmethod
    def failure(self, text: str) -> bytes:
        """The end of the client's answer where the provider has failed in the middle of it."""


def _summed(one: Mapping[str, Any], other: Mapping[str, Any]) -> Data:
    """Figures added up, those within figures too; what is no figure is the later one."""
    found = dict(one)
    for name, value in other.items():
        before = found.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            found[name] = _summed(before, value)
        elif _is_figure(value) and _is_figure(before):
            found[name] = before + value
        elif value is not None or name not in found:
            found[name] = value
    return found


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class AnthropicRelay(Relay):
    """Anthropic's Messages API."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[int, int | None] = {}
        """By number of a block: what the client knows it as; None for one that it is not shown."""
        self._blocks: dict[int, Data] = {}
        self._deltas: dict[int, dict[str, list[str]]] = {}
        self._sent = 0
        self._ending: Data = {}
        self._bodies: list[Data] = []

    def begin(self) -> None:
        """See `Relay`."""
        super().begin()
        self._places, self._blocks, self._deltas = {}, {}, {}

    def pass_on(self, event: StreamEvent) -> bytes:
        """See `Relay`."""
        data = event.data
        if data is None:
            return event.raw
        match data.get("type"):
            case "message_start":
                self.usage = dict(data["message"].get("usage") or {})
                return event.raw if self.rounds == 1 else b""
            case "content_block_start":
                index, block = data["index"], dict(data["content_block"])
                self._blocks[index] = block
                is_own = block.get("type") == "tool_use" and block.get("name") in self.own
                self._places[index] = None if is_own else self._sent
                self._sent += not is_own
                self.changed = self.changed or is_own
                return self._moved(event, data)
            case "content_block_delta":
                delta = data["delta"]
                if (names := _DELTAS.get(delta.get("type"))) is not None:
                    pieces = self._deltas.setdefault(data["index"], {})
                    pieces.setdefault(names[1], []).append(delta[names[0]])
                return self._moved(event, data)
            case "content_block_stop":
                return self._moved(event, data)
            case "message_delta":
                self._ending = data
                self.usage |= {k: v for k, v in (data.get("usage") or {}).items() if v is not None}
                return self._hold(event)
            case "message_stop":
                self.ended = True
                blocks, deltas = self._blocks, self._deltas
                content = [_closed(blocks[n], deltas.get(n, {})) for n in sorted(blocks)]
                self.answer = {"role": "assistant", "content": content}
                return self._hold(event)
        return event.raw

    def _moved(self, event: StreamEvent, data: Data) -> bytes:
        place = self._places[data["index"]]
        if place is None:
            return b""
        if place == data["index"]:
            return event.raw
        return encoded(event.name, {**data, "index": place})

    def finish(self) -> bytes:
        """See `Relay`."""
        if not self.changed:
            return self.held
        ending = {**self._ending, "usage": self.total}
        return encoded("message_delta", ending) + encoded("message_stop", {"type": "message_stop"})

    def take_whole(self, body: Data) -> None:
        """See `Relay`."""
        self.usage = dict(body.get("usage") or {})
        self.answer = {"role": "assistant", "content": body["content"]}
        self.ended = True
        self.changed = self.changed or any(b.get("name") in self.own for b in body["content"])
        self._bodies.append(body)

    def whole(self) -> Data:
        """See `Relay`."""
        last = self._bodies[-1]
        shown = [
            block
            for body in self._bodies
            for block in body["content"]
            if not (block.get("type") == "tool_use" and block.get("name") in self.own)
        ]
        return {**last, "content": shown, "usage": self.total}

    def failure(self, text: str) -> bytes:
        """See `Relay`."""
        error = {"type": "overloaded_error", "message": text}
        return encoded("error", {"type": "error", "error": error})


_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}
"""By type of a delta: its member, and the member of the block that it belongs to."""


def _closed(block: Data, deltas: Mapping[str, list[str]]) -> Data:
    """A block whose stream has ended."""
    for name, pieces in deltas.items():
        text = "".join(pieces)
        block[name] = _object(text) if name == "input" else str(block.get(name) or "") + text
    return block


def _object(text: Any) -> Data:
    try:
        value = json.loads(text or "{}")
    except (TypeError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


class ChatRelay(Relay):
    """OpenAI's chat completions."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: list[str] = []
        self._calls: dict[int, Data] = {}
        self._places: dict[int, int | None] = {}
        self._sent = 0
        self._head: Data = {}
        self._end: Data | None = None
        self._counts: Data | None = None
        self._bodies: list[Data] = []

    def begin(self) -> None:
        """See `Relay`."""
        super().begin()
        self._calls, self._places, self._texts = {}, {}, []

    def pass_on(self, event: StreamEvent) -> bytes:
        """See `Relay`."""
        data = event.data
        if data is None:
            if event.raw.strip() == b"data: [DONE]":
                self._close()
                return self._hold(event)
            return event.raw
        choices = data.get("choices")
        if isinstance(data.get("usage"), dict):
            self.usage = data["usage"]
            if not choices:
                self._counts = data
                return self._hold(event)
        if not choices:
            return event.raw
        if not self._head:
            self._head = {k: v for k, v in data.items() if k not in ("choices", "usage")}
        choice = choices[0]
        delta = dict(choice.get("delta") or {})
        self._collect(delta)
        shown = self._shown(delta)
        if choice.get("finish_reason"):
            self._end = {**data, "choices": [{**choice, "delta": {}}]}
            if not shown:
                return self._hold(event)
            self.changed = True
            choice = {**choice, "finish_reason": None}
        elif shown == delta and self.rounds == 1:
            return event.raw
        self.changed = True
        if not shown:
            return b""
        return encoded(event.name, {**data, **self._head, "choices": [{**choice, "delta": shown}]})

    def _collect(self, delta: Data) -> None:
        if delta.get("content"):
            self._texts.append(delta["content"])
        for call in delta.get("tool_calls") or ():
            index = call.get("index", 0)
            function = call.get("function") or {}
            known = self._calls.setdefault(
                index,
                {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
            )
            known["id"] = call.get("id") or known["id"]
            known["function"]["name"] = function.get("name") or known["function"]["name"]
            known["function"]["arguments"] += function.get("arguments") or ""
            if index not in self._places:
                is_own = known["function"]["name"] in self.own
                self._places[index] = None if is_own else self._sent
                self._sent += not is_own

    def _shown(self, delta: Data) -> Data:
        shown = dict(delta)
        if delta.get("tool_calls"):
            placed = [(self._places[c.get("index", 0)], c) for c in delta["tool_calls"]]
            calls = [{**c, "index": place} for place, c in placed if place is not None]
            shown["tool_calls"] = calls
            if not calls:
                del shown["tool_calls"]
        if self.rounds > 1 or len(shown) < len(delta):
            shown.pop("role", None)
            shown = {name: value for name, value in shown.items() if value not in (None, "")}
        return shown

    def _close(self) -> None:
        self.ended = True
        self.answer = {"role": "assistant", "content": "".join(self._texts)}
        if self._calls:
            self.answer["tool_calls"] = [self._calls[index] for index in sorted(self._calls)]

    def finish(self) -> bytes:
        """See `Relay`."""
        if not self.changed:
            return self.held
        found = b""
        if self._end is not None:
            end = {**self._end, **self._head}
            if "usage" in end and self.rounds > 1:
                end["usage"] = self.total
            found += encoded("", end)
        if self._counts is not None:
            counts = {**self._counts, **self._head, "usage": self.total}
            found += encoded("", self._counts if self.rounds == 1 else counts)
        return found + b"data: [DONE]\n\n"

    def take_whole(self, body: Data) -> None:
        """See `Relay`."""
        self.usage = dict(body.get("usage") or {})
        self.answer = body["choices"][0]["message"]
        self.ended = True
        self.changed = self.changed or bool(self.answer.get("tool_calls"))
        self._bodies.append(body)

    def whole(self) -> Data:
        """See `Relay`."""
        messages = [body["choices"][0]["message"] for body in self._bodies]
        calls = [
            call
            for message in messages
            for call in message.get("tool_calls") or ()
            if (call.get("function") or {}).get("name") not in self.own
        ]
        texts = [message["content"] for message in messages if message.get("content")]
        merged = {**messages[-1], "content": "".join(texts) if texts else None}
        merged.pop("tool_calls", None)
        if calls:
            merged["tool_calls"] = calls
        last = self._bodies[-1]
        choice = {**last["choices"][0], "message": merged}
        return {**last, "choices": [choice], "usage": self.total}

    def failure(self, text: str) -> bytes:
        """See `Relay`."""
        return encoded("", {"error": {"type": "server_error", "message": text}})


class ResponsesRelay(Relay):
    """OpenAI's Responses API."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[int, int | None] = {}
        self._items: dict[int, Data] = {}
        self._sent = 0
        self._number = 0
        """Of the client's next event."""
        self._first = ""
        """The id of the first response, which is that of all to the client."""
        self._output: list[Data] = []
        """Of the answers before."""
        self._end: tuple[str, Data] = ("", {})

    def begin(self) -> None:
        """See `Relay`."""
        super().begin()
        self._output += self._shown_items()
        self._places, self._items = {}, {}

    def _shown_items(self) -> list[Data]:
        items = (self._items[index] for index in sorted(self._items))
        return [item for item in items if not self._is_own(item)]

    def _is_own(self, item: Data) -> bool:
        return item.get("type") == "function_call" and item.get("name") in self.own

    def pass_on(self, event: StreamEvent) -> bytes:
        """See `Relay`."""
        data = event.data
        if data is None:
            return event.raw
        kind = str(data.get("type") or event.name)
        if kind in ("response.completed", "response.incomplete"):
            self._take(data["response"])
            self._end = (kind, data)
            return self._hold(event)
        if kind in ("response.created", "response.in_progress", "response.queued"):
            self._first = self._first or str((data.get("response") or {}).get("id") or "")
            return self._numbered(event, data) if self.rounds == 1 else b""
        index = data.get("output_index")
        if isinstance(index, int):
            item = data.get("item")
            if isinstance(item, dict):
                self._items[index] = item
                if index not in self._places:
                    is_own = self._is_own(item)
                    self._places[index] = None if is_own else self._sent
                    self._sent += not is_own
                    self.changed = self.changed or is_own
            place = self._places.get(index, index)
            if place is None:
                return b""
            data = {**data, "output_index": place}
        return self._numbered(event, data)

    def _numbered(self, event: StreamEvent, data: Data) -> bytes:
        number = self._number
        self._number += 1
        if data.get("sequence_number") not in (None, number):
            data = {**data, "sequence_number": number}
        return event.raw if data == event.data else encoded(event.name, data)

    def _take(self, response: Data) -> None:
        self.usage = dict(response.get("usage") or {})
        if response.get("output"):
            self._items = dict(enumerate(response["output"]))
        items = [self._items[index] for index in sorted(self._items)]
        self.answer = {"role": "assistant", "items": items}
        self.ended = True
        self.changed = self.changed or any(map(self._is_own, items))
        self._response = response

    def finish(self) -> bytes:
        """See `Relay`."""
        if not self.changed:
            return self.held
        name, data = self._end
        number = {"sequence_number": self._number} if "sequence_number" in data else {}
        return encoded(name, {**data, **number, "response": self.whole()})

    def take_whole(self, body: Data) -> None:
        """See `Relay`."""
        self._first = self._first or str(body.get("id") or "")
        self._take(body)

    def whole(self) -> Data:
        """See `Relay`."""
        output = [*self._output, *self._shown_items()]
        named = {"id": self._first} if self._first else {}
        return {**self._response, **named, "output": output, "usage": self.total or None}

    def failure(self, text: str) -> bytes:
        """See `Relay`."""
        error = {"code": "server_error", "message": text}
        response = {"id": self._first, "status": "failed", "error": error}
        data = {"type": "response.failed", "response": response}
        return encoded("response.failed", data)
