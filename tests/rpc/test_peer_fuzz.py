"""Any lines at all: each gets its answer or is logged, and a good request works afterwards."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from memory_transport import MemoryTransport

from foredeck.rpc.peer import Method, Peer

names = st.sampled_from(["echo", "fail", "told", "ping", "$/cancel", "no/such", ""])
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
ids = st.integers(0, 5) | st.sampled_from(["e1", "e2", "x"]) | values
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | values,
        "id": ids,
        "method": names | values,
        "params": st.dictionaries(st.sampled_from(["id", "n", "self"]), ids) | values,
        "result": values,
        "error": values | st.fixed_dictionaries({"code": st.integers(), "message": st.text()}),
    },
)
well_formed = st.builds(
    lambda name, number, params: {"jsonrpc": "2.0", "id": number, "method": name, "params": params},
    names,
    st.integers(0, 5),
    st.dictionaries(st.sampled_from(["id", "n"]), ids),
)
lines = st.one_of(
    st.binary(max_size=40).map(lambda data: data.replace(b"\n", b" ")),
    (messages | well_formed | values).map(lambda value: json.dumps(value).encode()),
    (messages | well_formed).map(lambda value: json.dumps(value).encode()[:-1]),
)


class Entries(logging.Handler):
    """Counts log entries of the package."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002
        self.count += 1


async def _echo(params: dict[str, Any]) -> Any:
    await asyncio.sleep(0)
    return params


async def _fail(_params: dict[str, Any]) -> Any:
    raise LookupError("on purpose")


TABLE = {
    "echo": Method(_echo),
    "fail": Method(_fail, blocks_calls=True),
    "told": Method(_echo, kind="notification"),
    "ping": Method(_echo, ordered=False),
}


async def _exchange(lines: list[bytes], chunk: int) -> list[Any]:
    transport = MemoryTransport(line_limit=500)
    peer = Peer(transport, TABLE)
    running = asyncio.create_task(peer.run())
    await asyncio.sleep(0)
    data = b"".join(line + b"\n" for line in lines)
    for start in range(0, len(data), chunk):
        transport.feed(data[start : start + chunk])
        await asyncio.sleep(0)
    transport.feed(b'{"jsonrpc":"2.0","id":"last","method":"echo","params":{"n":1}}\n')
    transport.end()
    await running
    return [json.loads(line) for line in transport.sent]


@settings(max_examples=300, deadline=None)
@given(st.lists(lines, max_size=12), st.integers(1, 400))
def test_any_lines(lines: list[bytes], chunk: int) -> None:
    answers = asyncio.run(_exchange(lines, chunk))
    assert answers[-1] == {"jsonrpc": "2.0", "id": "last", "result": {"n": 1}}
    for answer in answers:
        assert answer["jsonrpc"] == "2.0"
        assert ("result" in answer) != ("error" in answer)


@settings(max_examples=200, deadline=None)
@given(lines)
def test_one_line_is_answered_once_or_logged(data: bytes) -> None:
    entries = Entries()
    logger = logging.getLogger("foredeck.rpc")
    before = logger.level
    logger.addHandler(entries)
    logger.setLevel(logging.DEBUG)
    try:
        answers = asyncio.run(_exchange([data], 100))
    finally:
        logger.removeHandler(entries)
        logger.setLevel(before)
    assert len(answers) <= 2
    silent_by_right = _is_notification(data)
    assert len(answers) == 2 or entries.count > 1 or silent_by_right  # one entry tells the end


def _is_notification(data: bytes) -> bool:
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(message, dict) and message.get("method") in ("told", "$/cancel")
