"""Server-sent events: a stream taken apart, and put together again."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

Data = dict[str, Any]


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


_END = re.compile(rb"(\n\n|\r\n\r\n)")


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
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
