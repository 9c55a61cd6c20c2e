"""The peer, on a transport in memory: order, cancellation, answers, reverse calls."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from engine_process import line, notification, request
from memory_transport import MemoryTransport

from foredeck.rpc.peer import Method, Peer
from foredeck.rpc.wire import PeerClosedError, RemoteError


class Wire:
    """A peer under test and the other end of its transport."""

    def __init__(self, methods: Mapping[str, Method], *, line_limit: int = 10_000) -> None:
        self.transport = MemoryTransport(line_limit=line_limit)
        self.peer = Peer(self.transport, methods)
        self.running = asyncio.create_task(self.peer.run())

    async def feed(self, *lines: bytes) -> None:
        await asyncio.sleep(0)  # lets the peer start
        self.transport.feed(b"".join(lines))
        await self.settle()

    async def settle(self) -> None:
        """Give every task the chance to go as far as it can."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def end(self) -> None:
        self.transport.end()
        await self.running
        await self.peer.close()

    def take(self) -> list[Any]:
        """What was sent since the last time."""
        found = [json.loads(data) for data in self.transport.sent]
        self.transport.sent.clear()
        return found


class Handlers:
    """Methods that a test steers: `gate` holds back whoever waits for it."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.gate = asyncio.Event()

    def table(self) -> dict[str, Method]:
        return {
            "echo": Method(self.echo),
            "wait": Method(self.wait),
            "assemble": Method(self.wait, blocks_calls=True),
            "ping": Method(self.echo, ordered=False),
            "told": Method(self.echo, kind="notification"),
        }

    async def echo(self, params: dict[str, Any]) -> Any:
        self.events.append(f"echo {params.get('n')}")
        return params

    async def wait(self, params: dict[str, Any]) -> Any:
        self.events.append(f"begin {params.get('n')}")
        await self.gate.wait()
        self.events.append(f"end {params.get('n')}")
        return params


@pytest.fixture
def handlers() -> Handlers:
    return Handlers()


@pytest.fixture
async def wire(handlers: Handlers) -> AsyncIterator[Wire]:
    made = Wire(handlers.table())
    yield made
    await made.end()


async def test_ordered_requests_wait_and_the_others_do_not(wire: Wire, handlers: Handlers) -> None:
    await wire.feed(
        request(1, "wait", {"n": 1}),
        request(2, "echo", {"n": 2}),
        request(3, "ping"),
        notification("told", {"n": 4}),
    )
    assert [answer["id"] for answer in wire.take()] == [3]
    handlers.gate.set()
    await wire.settle()
    assert [answer["id"] for answer in wire.take()] == [1, 2]
    assert handlers.events == ["begin 1", "echo None", "end 1", "echo 2", "echo 4"]
    await wire.end()
    assert wire.transport.closed


async def test_cancel_ends_a_running_request_and_lets_the_next_one_in(wire: Wire) -> None:
    await wire.feed(request(1, "wait", {"n": 1}), request(2, "echo", {"n": 2}))
    await wire.feed(notification("$/cancel", {"id": 1}))
    cancelled, served = wire.take()
    assert cancelled == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32800, "message": "cancelled"},
    }
    assert served["id"] == 2


async def test_cancel_after_the_handler_returned_does_not_hide_its_result() -> None:
    wire: Wire

    async def finish(params: dict[str, Any]) -> Any:
        # Arrives once the handler's work is done and before the answer is out.
        asyncio.get_running_loop().call_soon(
            wire.transport.feed, notification("$/cancel", {"id": 1})
        )
        return params

    wire = Wire({"finish": Method(finish)})
    await wire.feed(request(1, "finish", {"kept": True}))
    assert wire.take() == [{"jsonrpc": "2.0", "id": 1, "result": {"kept": True}}]
    await wire.end()


async def test_a_reverse_call_gets_its_response_whatever_the_order(wire: Wire) -> None:
    first = asyncio.create_task(wire.peer.call("host/complete", {"n": 1}))
    second = asyncio.create_task(wire.peer.call("host/complete", {"n": 2}))
    await wire.settle()
    assert [call["id"] for call in wire.take()] == ["e1", "e2"]
    await wire.feed(
        line({"jsonrpc": "2.0", "id": "e2", "result": "two"}),
        line({"jsonrpc": "2.0", "id": "e1", "result": "one"}),
    )
    assert (await first, await second) == ("one", "two")


async def test_the_peer_serves_requests_while_it_waits_for_the_host() -> None:
    wire: Wire

    async def ask(_params: dict[str, Any]) -> Any:
        return await wire.peer.call("host/complete", {})

    async def ping(_params: dict[str, Any]) -> Any:
        return {}

    wire = Wire({"command": Method(ask), "ping": Method(ping, ordered=False)})
    await wire.feed(request(1, "command"), request(2, "ping"))
    assert [message["id"] for message in wire.take()] == ["e1", 2]
    await wire.feed(line({"jsonrpc": "2.0", "id": "e1", "result": {"text": "t"}}))
    assert wire.take() == [{"jsonrpc": "2.0", "id": 1, "result": {"text": "t"}}]
    await wire.end()


async def test_a_response_too_long_to_read_fails_its_call() -> None:
    wire = Wire({}, line_limit=100)
    call = asyncio.create_task(wire.peer.call("host/complete", {}))
    await wire.settle()
    await wire.feed(line({"jsonrpc": "2.0", "id": "e1", "result": "x" * 200}))
    with pytest.raises(RemoteError, match="longer than this side accepts"):
        await call
    assert len(wire.take()) == 1  # the request alone: a response is not answered
    await wire.end()


async def test_no_reverse_call_while_a_context_is_assembled(wire: Wire, handlers: Handlers) -> None:
    await wire.feed(request(1, "assemble", {"n": 1}), request(2, "assemble", {"n": 2}))
    call = asyncio.create_task(wire.peer.call("host/complete", {}))
    await wire.settle()
    assert wire.take() == []
    handlers.gate.set()
    await wire.settle()
    assert [message["id"] for message in wire.take()] == [1, 2, "e1"]
    await wire.feed(line({"jsonrpc": "2.0", "id": "e1", "result": None}))
    assert await call is None


async def test_a_cancelled_assemble_lets_reverse_calls_go(wire: Wire) -> None:
    await wire.feed(request(1, "assemble", {"n": 1}))
    call = asyncio.create_task(wire.peer.call("host/complete", {}))
    await wire.feed(notification("$/cancel", {"id": 1}))
    assert [message["id"] for message in wire.take()] == [1, "e1"]
    await wire.end()
    with pytest.raises(PeerClosedError):
        await call


async def test_an_assemble_that_calls_the_host_itself_is_refused() -> None:
    wire: Wire

    async def assemble(_params: dict[str, Any]) -> Any:
        return await wire.peer.call("host/complete", {})

    wire = Wire({"assemble": Method(assemble, blocks_calls=True)})
    await wire.feed(request(1, "assemble"))
    [answer] = wire.take()
    assert "while a context is assembled" in answer["error"]["message"]
    await wire.end()


async def test_a_request_after_stop_is_refused(wire: Wire, handlers: Handlers) -> None:
    await wire.feed(request(1, "wait", {"n": 1}))
    wire.peer.stop("test")
    await wire.feed(request(2, "echo"))
    [refused] = wire.take()
    assert (refused["id"], refused["error"]["code"]) == (2, -32600)
    handlers.gate.set()
    await wire.running
    assert [answer["id"] for answer in wire.take()] == [1]


async def test_a_request_that_never_ends_does_not_hold_up_the_end(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foredeck.rpc.peer.DRAIN_SECONDS", 0.01)
    await wire.feed(request(1, "wait", {"n": 1}), request(2, "wait", {"n": 2}))
    await wire.end()
    assert {answer["id"]: answer["error"]["code"] for answer in wire.take()} == {
        1: -32800,
        2: -32800,
    }


async def test_the_content_of_requests_is_not_logged(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await wire.feed(
        request(1, "echo", {"text": "private words"}),
        notification("nothing", {"text": "private words"}),
        line({"jsonrpc": "2.0", "id": 3, "result": "private words"}),
        b"private words\n",
    )
    await wire.end()
    assert "private words" not in caplog.text
