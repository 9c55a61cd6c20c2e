"""The relays of the APIs that are spoken."""

from __future__ import annotations

import json
from collections.abc import Sequence

from foredeck_agents.proxy.relays import Data, Relay, StreamEvent, encoded


class AnthropicRelay(Relay):
    """Anthropic's Messages API."""

    def __init__(self) -> None:
        super().__init__()
        self._start: Data = {}
        self._ending: Data = {}

    def pass_on(self, event: StreamEvent) -> bytes:
        data = event.data or {}
        match data.get("type"):
            case "message_start":
                self._start = data["message"]
                # To the client it is one answer, which begins once.
                return event.raw if self.rounds == 1 else b""
            case "content_block_start":
                self._meet(data["index"], dict(data["content_block"]))
                return self._moved(event, data)
            case "content_block_delta":
                delta = data["delta"]
                if (names := _DELTAS.get(delta.get("type"))) is not None:
                    key = (data["index"], names[1])
                    self._pieces.setdefault(key, []).append(delta[names[0]])
                return self._moved(event, data)
            case "content_block_stop":
                return self._moved(event, data)
            case "message_delta":
                # Held until it is known whether the model goes on without the client.
                self._ending = data
                return self._hold(event)
            case "message_stop":
                self._close()
                return self._hold(event)
        return event.raw

    def _moved(self, event: StreamEvent, data: Data) -> bytes:
        place = self._places[data["index"]]
        if place is None:
            return b""
        # As it came where nothing of foredeck's was left out before it.
        if place == data["index"]:
            return event.raw
        return encoded(event.name, {**data, "index": place})

    def _close(self) -> None:
        for (number, name), pieces in self._pieces.items():
            block, text = self._met[number], "".join(pieces)
            is_json = name == "input"
            block[name] = _object(text) if is_json else str(block.get(name) or "") + text
        # The beginning has what went in, the end what came out; a figure of both holds as it is
        # last.
        counts = (self._start.get("usage"), self._ending.get("usage"))
        usage = {k: v for each in counts for k, v in (each or {}).items() if v is not None}
        self.take_whole({**self._start, "content": self._met_in_order(), "usage": usage})

    def _end(self) -> bytes:
        ending = {**self._ending, "usage": self.shown_usage}
        return encoded("message_delta", ending) + encoded("message_stop", {"type": "message_stop"})

    def _message(self, body: Data) -> Data:
        return {"role": "assistant", "content": body["content"]}

    def _parts(self, body: Data) -> Sequence[Data]:
        blocks: list[Data] = body["content"]
        return blocks

    def _is_own(self, part: Data) -> bool:
        return part.get("type") == "tool_use" and part.get("name") in self.own

    def whole(self) -> Data:
        return {**self._bodies[-1], "content": self._shown(), "usage": self.shown_usage}

    def _say(self, text: str) -> bytes:
        place, block = self._sent, {"type": "text", "text": text}
        last = self._bodies[-1]
        self._bodies[-1] = {**last, "content": [*last["content"], block], "stop_reason": "end_turn"}
        delta = {**(self._ending.get("delta") or {}), "stop_reason": "end_turn"}
        self._ending = {**self._ending, "type": "message_delta", "delta": delta}
        parts: Sequence[tuple[str, Data]] = (
            ("start", {"content_block": {**block, "text": ""}}),
            ("delta", {"delta": {"type": "text_delta", "text": text}}),
            ("stop", {}),
        )
        kinds = [(f"content_block_{kind}", more) for kind, more in parts]
        return b"".join(encoded(k, {"type": k, "index": place, **more}) for k, more in kinds)

    def failure(self, text: str) -> bytes:
        error = {"type": "overloaded_error", "message": text}
        return encoded("error", {"type": "error", "error": error})


_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}


def _object(text: str) -> Data:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


_TEXT = (0, "content")
"""The one text of an answer."""


class ChatRelay(Relay):
    """OpenAI's chat completions."""

    def __init__(self) -> None:
        super().__init__()
        self._head: Data = {}
        self._ending: Data | None = None
        self._counts: Data | None = None

    def begin(self) -> None:
        super().begin()
        self._counts = None

    def pass_on(self, event: StreamEvent) -> bytes:
        data = event.data
        if data is None:
            if event.raw.strip() == b"data: [DONE]":
                self._close()
                return self._hold(event)
            return event.raw
        choices = data.get("choices")
        if isinstance(data.get("usage"), dict):
            self._counts = data
            # With `include_usage` the last chunk has figures and no choice.
            if not choices:
                return self._hold(event)
        if not choices:
            return event.raw
        if not self._head:
            # Later answers go out under the id of the first, of which they are a part.
            self._head = {k: v for k, v in data.items() if k not in ("choices", "usage")}
        choice = choices[0]
        delta = dict(choice.get("delta") or {})
        self._collect(delta)
        shown = self._shown_delta(delta)
        if choice.get("finish_reason"):
            # Some servers end an answer in the chunk of its last piece: that piece goes out now,
            # the end is held.
            self._ending = {**data, "choices": [{**choice, "delta": {}}]}
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
            self._pieces.setdefault(_TEXT, []).append(delta["content"])
        for call in delta.get("tool_calls") or ():
            index = call.get("index", 0)
            function = call.get("function") or {}
            empty = {"name": "", "arguments": ""}
            known = self._met.get(index) or {"id": "", "type": "function", "function": empty}
            known["id"] = call.get("id") or known["id"]
            known["function"]["name"] = function.get("name") or known["function"]["name"]
            known["function"]["arguments"] += function.get("arguments") or ""
            self._meet(index, known)

    def _shown_delta(self, delta: Data) -> Data:
        shown = dict(delta)
        if delta.get("tool_calls"):
            placed = [(self._places[c.get("index", 0)], c) for c in delta["tool_calls"]]
            calls = [{**c, "index": place} for place, c in placed if place is not None]
            shown["tool_calls"] = calls
            if not calls:
                del shown["tool_calls"]
        if self.rounds > 1 or len(shown) < len(delta):
            # The first chunk of the client's answer has said it.
            shown.pop("role", None)
            shown = {name: value for name, value in shown.items() if value not in (None, "")}
        return shown

    def _close(self) -> None:
        text = "".join(self._pieces.get(_TEXT, ()))
        message: Data = {"role": "assistant", "content": text}
        if self._met:
            message["tool_calls"] = self._met_in_order()
        usage = (self._counts or {}).get("usage")
        self.take_whole({"choices": [{"message": message}], "usage": usage})

    def _end(self) -> bytes:
        events = b""
        if self._ending is not None:
            ending = {**self._ending, **self._head}
            if "usage" in ending and self.rounds > 1:
                ending["usage"] = self.shown_usage
            events += encoded("", ending)
        if self._counts is not None and not self._counts.get("choices"):
            counts = {**self._counts, **self._head, "usage": self.shown_usage}
            events += encoded("", self._counts if self.rounds == 1 else counts)
        return events + b"data: [DONE]\n\n"

    def _message(self, body: Data) -> Data:
        message: Data = body["choices"][0]["message"]
        return message

    def _parts(self, body: Data) -> Sequence[Data]:
        return self._message(body).get("tool_calls") or ()

    def _is_own(self, part: Data) -> bool:
        return (part.get("function") or {}).get("name") in self.own

    def whole(self) -> Data:
        messages = [self._message(body) for body in self._bodies]
        texts = [message["content"] for message in messages if message.get("content")]
        merged = {**messages[-1], "content": "".join(texts) if texts else None}
        merged.pop("tool_calls", None)
        if calls := self._shown():
            merged["tool_calls"] = calls
        last = self._bodies[-1]
        choice = {**last["choices"][0], "message": merged}
        return {**last, "choices": [choice], "usage": self.shown_usage}

    def _say(self, text: str) -> bytes:
        last = self._bodies[-1]
        choice = {**last["choices"][0], "finish_reason": "stop"}
        message = choice["message"]
        choice["message"] = {**message, "content": (message.get("content") or "") + text}
        self._bodies[-1] = {**last, "choices": [choice]}
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        self._ending = {**(self._ending or {}), "choices": [end]}
        delta = {"index": 0, "delta": {"content": text}, "finish_reason": None}
        return encoded("", {**self._ending, **self._head, "choices": [delta]})

    def failure(self, text: str) -> bytes:
        return encoded("", {"error": {"type": "server_error", "message": text}})


class ResponsesRelay(Relay):
    """OpenAI's Responses API."""

    def __init__(self) -> None:
        super().__init__()
        self._number = 0
        """Of the client's next event."""
        self._first = ""
        self._ending: tuple[str, Data] = ("", {})

    def pass_on(self, event: StreamEvent) -> bytes:
        data = event.data
        if data is None:
            return event.raw
        kind = str(data.get("type") or event.name)
        if kind in ("response.completed", "response.incomplete"):
            response = data["response"]
            # Where the last event brings no items they are those that came one by one.
            if not response.get("output"):
                response = {**response, "output": self._met_in_order()}
            self.take_whole(response)
            self._ending = (kind, data)
            return self._hold(event)
        if kind in ("response.created", "response.in_progress", "response.queued"):
            self._first = self._first or str((data.get("response") or {}).get("id") or "")
            return self._numbered(event, data) if self.rounds == 1 else b""
        number = data.get("output_index")
        if isinstance(number, int):
            item = data.get("item")
            if isinstance(item, dict):
                self._meet(number, item)
            place = self._places.get(number, number)
            if place is None:
                return b""
            data = {**data, "output_index": place}
        return self._numbered(event, data)

    def _numbered(self, event: StreamEvent, data: Data) -> bytes:
        # Clients expect numbers without a gap, also where events are left out or answers put
        # together.
        number = self._number
        self._number += 1
        if data.get("sequence_number") not in (None, number):
            data = {**data, "sequence_number": number}
        return event.raw if data == event.data else encoded(event.name, data)

    def _end(self) -> bytes:
        name, data = self._ending
        number = {"sequence_number": self._number} if "sequence_number" in data else {}
        return encoded(name, {**data, **number, "response": self.whole()})

    def _message(self, body: Data) -> Data:
        return {"role": "assistant", "items": list(self._parts(body))}

    def _parts(self, body: Data) -> Sequence[Data]:
        return body.get("output") or ()

    def _is_own(self, part: Data) -> bool:
        return part.get("type") == "function_call" and part.get("name") in self.own

    def whole(self) -> Data:
        first = self._first or self._bodies[0].get("id")
        named, output = {"id": first} if first else {}, self._shown()
        return {**self._bodies[-1], **named, "output": output, "usage": self.shown_usage or None}

    def _say(self, text: str) -> bytes:
        place, item_id = self._sent, "msg_foredeck"
        part = {"type": "output_text", "text": text, "annotations": []}
        item = {"type": "message", "id": item_id, "role": "assistant", "content": [part]}
        whole = {**item, "status": "completed"}
        self._bodies[-1] = {**self._bodies[-1], "output": [*self._parts(self._bodies[-1]), whole]}
        begun = {**item, "status": "in_progress", "content": []}
        within = {"item_id": item_id, "content_index": 0}
        parts = (
            ("output_item.added", {"item": begun}),
            ("content_part.added", {**within, "part": {**part, "text": ""}}),
            ("output_text.delta", {**within, "delta": text}),
            ("output_text.done", {**within, "text": text}),
            ("content_part.done", {**within, "part": part}),
            ("output_item.done", {"item": whole}),
        )
        events = b""
        for name, more in parts:
            kind = f"response.{name}"
            data = {"type": kind, "sequence_number": self._number, "output_index": place, **more}
            events += self._numbered(StreamEvent(kind, data, encoded(kind, data)), data)
        return events

    def failure(self, text: str) -> bytes:
        error = {"code": "server_error", "message": text}
        response = {"id": self._first, "status": "failed", "error": error}
        data = {"type": "response.failed", "response": response}
        return encoded("response.failed", data)
