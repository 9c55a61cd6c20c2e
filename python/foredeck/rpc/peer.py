"""One side of the connection: reads lines, serves requests, sends answers and own requests.

Rules (docs/protocol.md):

- every request with an id gets exactly one answer, and every bad line an error or a log entry.
  Size, depth and ids are checked here, the rest of the envelope by jsonrpcserver;
- methods that change state run one after the other, in order of arrival, and never half;
- a cancelled request is answered with -32800 by the peer itself;
- a response goes to the call that waits for it and is never dispatched;
- when the input ends, what has arrived is served, then everything is closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, NamedTuple

from jsonrpcserver import Error, Result, Success, async_dispatch_to_serializable

from foredeck.errors import ForedeckError
from foredeck.rpc.wire import (
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ParseError,
    PeerClosedError,
    RemoteError,
    StdioTransport,
    TooLong,
    decode,
    encode,
    leading_members,
)

log = logging.getLogger(__name__)

DRAIN_SECONDS = 10.0
"""For an arrived request after the connection has ended."""

CANCEL = "$/cancel"

RequestId = int | str
Handler = Callable[[dict[str, Any]], Awaitable[Any]]


class Method(NamedTuple):
    """A method for the other side.

    `ordered`: in order of arrival; `blocks_calls`: we send no requests meanwhile, as the host
    waits.
    """

    handler: Handler
    kind: Literal["request", "notification"] = "request"
    ordered: bool = True
    blocks_calls: bool = False


@dataclass(slots=True, eq=False)
class OpenRequest:
    """An unanswered request; `id` is None for a notification.

    `settled`: the handler has returned.
    """

    name: str
    id: RequestId | None
    message: dict[str, Any]
    method: Method | None
    settled: bool = False
    answered: bool = False
    task: asyncio.Task[None] | None = None
    worker: asyncio.Task[Any] | None = None


class Peer:
    """Serves `methods`: create on the event loop, await `run`, then `close`."""

    def __init__(self, transport: StdioTransport, methods: Mapping[str, Method]) -> None:
        self._transport = transport
        self._methods = methods
        # In the form in which jsonrpcserver calls them.
        self._table = {name: _adapt(name, method.handler) for name, method in methods.items()}
        self._order = asyncio.Lock()  # its waiters are the queue: first come, first served
        self._open: dict[RequestId, OpenRequest] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()
        self._calls = ReverseCalls(self._send)

    async def run(self) -> None:
        """Serves until the input ends, the output is lost, or `stop` is called."""
        self._transport.start(self)
        await self._stop.wait()
        # First: a request that waits for the host's answer would never end.
        self._calls.close()
        await self._drain()

    async def close(self) -> None:
        await self._transport.close()

    def stop(self, reason: str) -> None:
        """Ends `run` once arrived requests are served. On the loop only; idempotent."""
        if not self._stop.is_set():
            log.info("ending: %s", reason)
            self._stop.set()

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Sends a notification, from any thread."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def call(
        self, method: str, params: dict[str, Any], *, timeout_s: float | None = None
    ) -> Any:
        """Asks the other side; see `ReverseCalls.call`."""
        return await self._calls.call(method, params, timeout_s=timeout_s)

    # What the transport reports

    def line_received(self, line: bytes) -> None:
        """Takes a request, notification or response."""
        try:
            message = decode(line)
        except ParseError as error:
            self._refuse(None, PARSE_ERROR, str(error))
            return
        if not isinstance(message, dict):
            self._refuse(None, INVALID_REQUEST, "Invalid request: a line is one JSON object")
        elif "method" in message:
            self._request_received(message)
        elif "result" not in message and "error" not in message:
            self._refuse(_valid_id(message), INVALID_REQUEST, "Invalid request: no method")
        elif not self._calls.settle(message):
            log.warning("a response came that nothing waits for (id %.100r)", message.get("id"))

    def line_too_long(self, line: TooLong) -> None:
        members = leading_members(line.prefix)
        text = f"the line of {line.size} bytes is longer than this side accepts"
        if "method" not in members and isinstance(members.get("id"), str):
            error = {"code": INVALID_REQUEST, "message": text}
            if self._calls.settle({"id": members["id"], "error": error}):
                return
        self._refuse(_valid_id(members), INVALID_REQUEST, f"Invalid request: {text}")

    def input_ended(self, torn: int) -> None:
        if torn:
            log.warning("the input ended within a line: %d bytes were not read as a request", torn)
        self.stop("end of input")

    def output_lost(self) -> None:
        """Ends: nobody reads the answers."""
        self.stop("the host has stopped reading")

    # Requests

    def _request_received(self, message: dict[str, Any]) -> None:
        name, request_id = message["method"], _valid_id(message)
        if "id" in message and request_id is None:
            text = 'Invalid request: "id" must be a whole number or a string'
            self._refuse(None, INVALID_REQUEST, text)
        elif self._stop.is_set():
            self._refuse(request_id, INVALID_REQUEST, "Invalid request: the engine is ending")
        elif name == CANCEL and request_id is not None:
            self._refuse(
                request_id, INVALID_REQUEST, f"Invalid request: {CANCEL} is a notification"
            )
        elif name == CANCEL:
            self._cancel(message.get("params"))
        elif request_id in self._open:
            text = f"Invalid request: id {request_id!r} is still open"
            self._refuse(None, INVALID_REQUEST, text)  # its id must keep meaning the first one
        else:
            method = self._methods.get(name) if isinstance(name, str) else None
            if request_id is None and (method is None or method.kind == "request"):
                log.warning("notification %.100r is not served: it is not one", name)
            else:
                self._serve(OpenRequest(str(name), request_id, message, method))

    def _serve(self, request: OpenRequest) -> None:
        # From its arrival on, not from its turn: the host waits already.
        if request.method and request.method.blocks_calls:
            self._calls.block(request)
        task = asyncio.create_task(self._run_in_turn(request), name=request.name[:40])
        request.task = task
        # The loop itself holds a task only weakly.
        self._tasks.add(task)
        if request.id is not None:
            self._open[request.id] = request
        # A task that is cancelled before its first step runs no code: only a callback sees its end.
        task.add_done_callback(lambda done: self._finished(request, done))

    async def _run_in_turn(self, request: OpenRequest) -> None:
        # Tasks begin in the order in which they were made, so they come to the lock in order of
        # arrival.
        ordered = request.method is not None and request.method.ordered
        async with self._order if ordered else nullcontext():
            # It is parsed: the id was needed before.
            response: Any = await async_dispatch_to_serializable(
                request.message, self._table, context=request, deserializer=lambda message: message
            )
            # Still in turn, so that answers leave in the order of their requests. jsonrpcserver
            # answers an invalid request under no id.
            if response is not None:
                self._answer(request, {**response, "id": request.id})

    def _finished(self, request: OpenRequest, task: asyncio.Task[None]) -> None:
        """Ends every request: served, failed or cancelled."""
        self._tasks.discard(task)
        if task.cancelled():
            self._answer_error(request, CANCELLED, "cancelled")
        elif error := task.exception():
            log.error("%s failed", request.name, exc_info=error)
            self._answer_error(request, INTERNAL_ERROR, internal_error_text(error))
        if request.method and request.method.blocks_calls:
            self._calls.unblock(request)

    def _cancel(self, params: object) -> None:
        request_id = _valid_id(params) if isinstance(params, dict) else None
        request = self._open.get(request_id) if request_id is not None else None
        if request is None or request.task is None:
            log.debug("nothing to cancel under id %.100r", request_id)
        # Once its work is done, cancelling would only lose the answer.
        elif not request.settled:
            request.task.cancel()

    async def _drain(self) -> None:
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=DRAIN_SECONDS)
        for task in (unfinished := set(self._tasks)):
            log.warning("%s was still running and is cancelled", task.get_name())
            task.cancel()
        # What is cancelled may still have something to put away; it is not waited for without end.
        if unfinished:
            await asyncio.wait(unfinished, timeout=DRAIN_SECONDS)

    # Answers

    def _answer(self, request: OpenRequest, response: dict[str, Any]) -> None:
        if request.id is None and "error" in response:
            log.warning("notification %.100r: %s", request.name, response["error"])
        # A request that was cancelled may have been answered in the same moment.
        if request.id is None or request.answered:
            return
        # Before it is sent: whatever comes of that, there is no second answer.
        request.answered = True
        del self._open[request.id]
        try:
            self._send(response)
        except (ValueError, TypeError, RecursionError) as error:
            log.exception("the answer to %s has no JSON form", request.name)
            self._send(_error(request.id, INTERNAL_ERROR, internal_error_text(error)))

    def _answer_error(self, request: OpenRequest, code: int, text: str) -> None:
        self._answer(request, _error(request.id, code, text))

    def _refuse(self, request_id: RequestId | None, code: int, text: str) -> None:
        log.warning("a line was refused: %s", text)
        self._send(_error(request_id, code, text))

    def _send(self, message: dict[str, Any]) -> None:
        self._transport.send(encode(message))


def _error(request_id: RequestId | None, code: int, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}}


def _valid_id(message: Mapping[str, Any]) -> RequestId | None:
    value = message.get("id")
    return value if type(value) in (int, str) else None


def _adapt(name: str, handler: Handler) -> Callable[..., Awaitable[Result]]:
    async def serve(request: OpenRequest, /, **params: Any) -> Result:
        request.worker = asyncio.current_task()
        try:
            result = Success(await handler(params))
        except ForedeckError as error:
            if request.id is None:
                log.warning("%s failed: %s", name, error)
            result = Error(error.code, str(error))
        except Exception as error:
            log.exception("%s failed", name)
            result = Error(INTERNAL_ERROR, internal_error_text(error))
        request.settled = True
        return result

    return serve


def internal_error_text(error: BaseException) -> str:
    """A short line for the host; the traceback is logged."""
    text = " ".join(str(error).split())
    return f"internal error: {type(error).__name__}: {text}"[:200].rstrip(": ")


class ReverseCalls:
    """Sends requests, and matches responses to calls."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send = send
        self._numbers = count(1)
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._blocking: set[OpenRequest] = set()
        self._free = asyncio.Event()
        self._free.set()
        self._closed = False

    def block(self, request: OpenRequest) -> None:
        self._blocking.add(request)
        self._free.clear()

    def unblock(self, request: OpenRequest) -> None:
        """Ends such a request."""
        self._blocking.discard(request)
        if not self._blocking:
            self._free.set()

    async def call(
        self, method: str, params: dict[str, Any], *, timeout_s: float | None = None
    ) -> Any:
        """Asks the host, and waits for its answer.

        Raises RemoteError, TimeoutError, or PeerClosedError; RuntimeError within a request that
        blocks calls.
        """
        # Such a handler would wait for the end of its own request.
        caller = asyncio.current_task()
        if any(request.worker is caller for request in self._blocking):
            raise RuntimeError(f"{method} was called while a context is assembled")
        async with asyncio.timeout(timeout_s):
            # Looked at again after each wait: another such request may have come before this task
            # ran.
            while not self._closed and not self._free.is_set():
                await self._free.wait()
            if self._closed:
                raise PeerClosedError("the host is gone")
            return await self._ask(f"e{next(self._numbers)}", method, params)

    async def _ask(self, call_id: str, method: str, params: dict[str, Any]) -> Any:
        answer = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = answer
        self._send({"jsonrpc": "2.0", "id": call_id, "method": method, "params": params})
        try:
            return await answer
        # After a timeout, too: that cancels this wait.
        except asyncio.CancelledError:
            self._send({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": call_id}})
            raise
        finally:
            del self._waiting[call_id]

    def settle(self, response: dict[str, Any]) -> bool:
        """Gives a response to its call; False if none waits for it."""
        answer = (
            self._waiting.get(call_id) if isinstance(call_id := response.get("id"), str) else None
        )
        # Done: its caller has given up, and has not had its turn yet to take it off the list.
        if answer is None or answer.done():
            return False
        # JSON-RPC allows one of the two; where both come, the error counts.
        error = response.get("error")
        if error is not None:
            answer.set_exception(_remote_error(error))
        elif "result" in response:
            answer.set_result(response["result"])
        else:
            answer.set_exception(RemoteError(INTERNAL_ERROR, "the host's answer has no result"))
        return True

    def close(self) -> None:
        """Ends waiting calls with PeerClosedError."""
        self._closed = True
        # Whoever waits for it looks at `_closed` next.
        self._free.set()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(PeerClosedError("the host is gone"))


def _remote_error(error: Any) -> RemoteError:
    if isinstance(error, dict) and isinstance(code := error.get("code"), int):
        return RemoteError(code, str(error.get("message", "")))
    return RemoteError(INTERNAL_ERROR, "the host answered with a malformed error")
