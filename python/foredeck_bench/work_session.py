"""A session of any length that looks like work, for measurements.

Deterministic; sizes follow recorded sessions.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from foredeck.context.messages.shape import Message
from foredeck.hosts.simulated_host import SimulatedHost

START_MS = 1_770_000_000_000
CALL_MS = 5_000
PAUSE_MS = 600_000
"""Longer than any prompt cache lasts."""

FILES = 40
CALLS_PER_TURN = 12
TURNS_PER_PAUSE = 4
MAX_RESULT = 50_000

MODEL = {
    "provider": "anthropic",
    "id": "model",
    "api": "anthropic-messages",
    "contextWindow": 1_000_000,
}
SYSTEM = [{"role": "system", "content": "You are a careful engineer. " * 150}]
TOOLS = [
    {
        "name": name,
        "description": f"What {name} does, and when to use it. " * 8,
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
    for name in ("read", "bash", "edit", "write", "activate", "deactivate", "pin", "unpin")
]
_VOCABULARY = """
    return value index error request session const async await import export function buffer
    string number result options config handler message length offset parse render update state
    token cache store commit branch merge build test assert expect module class public private
"""
_WORDS = _VOCABULARY.split()


def work_host(session: str, messages: Iterable[Message] = ()) -> SimulatedHost:
    """The host of such a session; `messages` if resumed."""
    host = SimulatedHost(session, model=MODEL, system=SYSTEM, tools=TOOLS)
    host.add(*messages)
    return host


@dataclass(frozen=True, slots=True)
class Step:
    """One model call: its messages, and the `tool/observed` before them."""

    messages: list[Message]
    observed: list[dict[str, Any]]
    time_ms: int


@dataclass(slots=True)
class WorkSession:
    folder: Path
    id: str = "bench"
    seed: int = 7
    scale: float = 1.0
    """Text sizes, relative to recorded sessions."""
    time_ms: int = START_MS
    calls: int = 0
    messages: int = 0
    transcript_bytes: int = 0
    """Size of Pi's session file so far."""
    _files: dict[str, str] = field(default_factory=dict)
    _random: random.Random = field(default_factory=random.Random)
    _pending: list[Message] = field(default_factory=list)
    _observed: list[dict[str, Any]] = field(default_factory=list)
    _edited: list[str] = field(default_factory=list)
    """Files that change when the next step's tool has run."""

    def __post_init__(self) -> None:
        self._random.seed(self.seed)
        for number in range(FILES):
            name = f"src/module_{number}.ts"
            self._write(name, self._text(self._random.randint(2_000, 12_000)))

    def steps(self, count: int) -> Iterator[Step]:
        """The next `count` model calls."""
        for _ in range(count):
            yield self._step()

    def _step(self) -> Step:
        for name in self._edited:
            (self.folder / name).write_text(self._files[name])
        self._edited = []
        if self.calls % CALLS_PER_TURN == 0:
            if self.calls % (CALLS_PER_TURN * TURNS_PER_PAUSE) == 0:
                self.time_ms += PAUSE_MS
            self._add({"role": "user", "content": [_text_block(self._text(200))]})
        self.time_ms += CALL_MS
        step = Step(self._pending, self._observed, self.time_ms)
        self._pending, self._observed = [], []
        self.calls += 1
        self._work()
        return step

    def _work(self) -> None:
        tool, arguments, output = self._tool()
        id = f"toolu_{self.id}_{self.seed}_{self.calls:06d}"
        usage = {"input": 900, "output": 120, "cacheRead": 40_000, "cacheWrite": 900}
        thinking = {
            "type": "thinking",
            "thinking": self._text(300),
            "thinkingSignature": self._random.randbytes(120).hex(),
        }
        call = {"type": "toolCall", "id": id, "name": tool, "arguments": arguments}
        self._add(
            {
                "role": "assistant",
                "content": [thinking, _text_block(self._text(120)), call],
                "api": MODEL["api"],
                "provider": MODEL["provider"],
                "model": MODEL["id"],
                "usage": usage,
                "stopReason": "toolUse",
            }
        )
        content = [_text_block(output)]
        result = {"role": "toolResult", "toolCallId": id, "toolName": tool, "isError": False}
        self._add({**result, "content": content})
        observed = {"id": id, "tool": tool, "input": arguments, "content": content}
        self._observed.append({**observed, "parent": None, "details": None, "is_error": False})

    def _tool(self) -> tuple[str, dict[str, Any], str]:
        kind = self._random.random()
        path = self._random.choice(list(self._files))
        if kind < 0.25:
            return "read", {"path": path}, self._files[path]
        if kind < 0.40:
            return self._edit(path)
        command = f"npm test -- {self._random.choice(_WORDS)} {self.calls}"
        size = min(MAX_RESULT, int(self._random.lognormvariate(7.4, 1.1)))
        return "bash", {"command": command}, self._text(size)

    def _edit(self, path: str) -> tuple[str, dict[str, Any], str]:
        lines = self._files[path].split("\n")
        at = self._random.randrange(len(lines) - 3)
        old = "\n".join(lines[at : at + 3])
        new = "\n".join(self._text(60).replace("\n", " ") for _ in range(3))
        self._files[path] = self._files[path].replace(old, new, 1)
        self._edited.append(path)
        arguments = {"path": path, "edits": [{"oldText": old, "newText": new}]}
        return "edit", arguments, f"Successfully replaced 1 block(s) in {path}."

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self._files[name] = text

    def _text(self, size: int) -> str:
        """A text of about `size` characters in lines, as compressible as code."""
        words: list[str] = []
        length, size = 0, int(self.scale * size)
        while length < size:
            word = self._random.choice(_WORDS)
            if self._random.random() < 0.15:
                word += str(self._random.randrange(10_000))
            if self._random.random() < 0.12:
                word += "\n  "
            words.append(word)
            length += len(word) + 1
        return " ".join(words)

    def _add(self, message: Message) -> None:
        message["timestamp"] = self.time_ms
        self._pending.append(message)
        self.messages += 1
        self.transcript_bytes += len(transcript_line(message, self.messages))


def transcript_line(message: Message, number: int) -> bytes:
    """A message as Pi writes it to its session file."""
    stamp = datetime.fromtimestamp(message["timestamp"] / 1000, UTC).isoformat("T", "milliseconds")
    entry = {
        "type": "message",
        "id": f"{number:08x}",
        "parentId": f"{number - 1:08x}",
        "timestamp": stamp.replace("+00:00", "Z"),
        "message": message,
    }
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
