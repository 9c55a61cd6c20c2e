"""What no host should send: lines that break JSON, JSON-RPC or the protocol."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

LINE_LIMIT = 1_000_000
"""What the engine under test is told to take at most, in bytes."""
DEEP = 100_000


def request_of(number: object, method: str, /, **params: Any) -> dict[str, Any]:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def line_of(message: Any) -> bytes:
    """A message as it goes over the pipe."""
    return json.dumps(message, ensure_ascii=False).encode(errors="surrogatepass") + b"\n"


def _valid(chosen: random.Random, number: int) -> dict[str, Any]:
    session = chosen.choice(["s", "t", ""])
    user = {"role": "user", "content": "hello", "timestamp": number}
    return chosen.choice(
        [
            request_of(number, "ping"),
            request_of(number, "session/open", session=session, file=None, cwd="/", reason="new"),
            request_of(number, "context/assemble", session=session, keep=0, messages=[user]),
            request_of(number, "tool/call", session=session, id="t", tool="activate", input={}),
            request_of(number, "command", session=session, name="list", args=""),
            request_of(number, "tool/observed", session=session, id="x", tool="bash", content=[]),
        ]
    )


def _garbage(chosen: random.Random, _number: int) -> Iterator[bytes]:
    yield chosen.randbytes(chosen.randrange(1, 300)).replace(b"\n", b" ") + b"\n"


def _mutated(chosen: random.Random, number: int) -> Iterator[bytes]:
    data = bytearray(line_of(_valid(chosen, number))[:-1])
    for _ in range(chosen.randrange(1, 6)):
        data[chosen.randrange(len(data))] = chosen.choice(b'{}[]",:0\\e\xff\x00 ')
    yield bytes(data) + b"\n"


def _odd_values(chosen: random.Random, number: int) -> Iterator[bytes]:
    odd: list[Any] = [
        None,
        -1,
        1e308,
        2**70,
        "",
        "\ud800",
        [],
        {},
        [[]],
        True,
        "x" * 5000,
        {"a": {"b": None}},
    ]
    message = _valid(chosen, number)
    name = chosen.choice(["id", "method", "jsonrpc", "params"])
    message[name] = chosen.choice(odd)
    if isinstance(message["params"], dict) and message["params"]:
        message["params"][chosen.choice(list(message["params"]))] = chosen.choice(odd)
    yield json.dumps(message).encode() + b"\n"


def _deep(chosen: random.Random, number: int) -> Iterator[bytes]:
    opened, closed = chosen.choice([(b"[", b"]"), (b'{"a":', b"}")])
    depth = min(DEEP, (LINE_LIMIT - 200) // (len(opened) + 1))
    start = b'{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"x":' % number
    yield start + opened * depth + b"1" + closed * depth + b"}}\n"


def _oversize(chosen: random.Random, number: int) -> Iterator[bytes]:
    start = b'{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"x":"' % number
    yield start + b"x" * (LINE_LIMIT + chosen.randrange(1, 100_000)) + b'"}}\n'


def _duplicate(chosen: random.Random, number: int) -> Iterator[bytes]:
    message = _valid(chosen, number)
    yield line_of(message) + line_of(message)


def _late(chosen: random.Random, number: int) -> Iterator[bytes]:
    id = chosen.choice([number, f"e{number}", "e1", None])
    yield line_of({"jsonrpc": "2.0", "id": id, "result": {"text": "nobody asked"}})


def _torn(chosen: random.Random, number: int) -> Iterator[bytes]:
    data = line_of(_valid(chosen, number))
    at = chosen.randrange(len(data))
    yield data[:at]
    yield data[at:]


def _cut(chosen: random.Random, number: int) -> Iterator[bytes]:
    data = line_of(_valid(chosen, number))
    yield data[: chosen.randrange(1, len(data))] + b"\n"


def _separators(_chosen: random.Random, number: int) -> Iterator[bytes]:
    yield line_of(request_of(number, "ping", text="a\u2028b\u2029c\u0085d\x0be"))


def _cancelled(chosen: random.Random, number: int) -> Iterator[bytes]:
    yield line_of(_valid(chosen, number))
    yield line_of({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": number}})


def _batch(chosen: random.Random, number: int) -> Iterator[bytes]:
    yield line_of([_valid(chosen, number), 1, None])


HOSTILE_LINES: dict[str, Callable[[random.Random, int], Iterator[bytes]]] = {
    "garbage": _garbage,
    "mutated": _mutated,
    "odd values": _odd_values,
    "deep": _deep,
    "oversize": _oversize,
    "duplicate ids": _duplicate,
    "late responses": _late,
    "torn": _torn,
    "cut off": _cut,
    "line separators": _separators,
    "cancelled": _cancelled,
    "batches": _batch,
}
"""What makes the bytes of one hostile message, by its kind, from random choices and a number."""
