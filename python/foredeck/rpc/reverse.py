"""Requests of the engine to the host, over the same connection.

The host computes nothing else while it waits for an assembled context, so no such request is sent
while one is open: it waits until the last is answered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import count
from typing import Any

from foredeck.rpc.dispatch import OpenRequest
from foredeck.rpc.errors import INTERNAL_ERROR, PeerClosedError, RemoteError

log = logging.getLogger(__name__)


class ReverseCalls:
    """Sends requests, and gives each response to the call that waits for it."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send = send
        self._numbers = count(1)
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._blocking: set[OpenRequest] = set()
        self._free = asyncio.Event()
        self._free.set()
        self._closed = False

    def block(self, request: OpenRequest) -> None:
        """A request has arrived during which nothing may be sent."""
        self._blocking.add(request)
        self._free.clear()

    def unblock(self, request: OpenRequest) -> None:
        """Such a request has been answered."""
        self._blocking.discard(request)
        if not self._blocking:
            self._free.set()

    async def call(
        self, method: str, params: dict[str, Any], *, timeout_s: float | None = None
    ) -> Any:
        """Ask the host, and wait for its answer.

        Raises RemoteError if it answers with an error, TimeoutError, or PeerClosedError if the
        connection ends first; RuntimeError if called by the handler of a request that blocks calls,
        which would wait for itself. On timeout and on cancellation the host gets a `$/cancel`.
        """
        caller = asyncio.current_task()
        if any(request.worker is caller for request in self._blocking):
            raise RuntimeError(f"{method} was called while a context is assembled")
        async with asyncio.timeout(timeout_s):
            await self._until_free()
            return await self._ask(f"e{next(self._numbers)}", method, params)

    async def _until_free(self) -> None:
        # Looked at again after each wait: another such request may have come before this task ran.
        while not self._closed and not self._free.is_set():
            await self._free.wait()
        if self._closed:
            raise PeerClosedError("the host is gone")

    async def _ask(self, call_id: str, method: str, params: dict[str, Any]) -> Any:
        answer = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = answer
        self._send({"jsonrpc": "2.0", "id": call_id, "method": method, "params": params})
        try:
            return await answer
        except asyncio.CancelledError:
            self._send({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": call_id}})
            raise
        finally:
            del self._waiting[call_id]

    def settle(self, response: dict[str, Any]) -> bool:
        """Give a response to its call; False if no call waits for it (a late or invented one)."""
        answer = (
            self._waiting.get(call_id) if isinstance(call_id := response.get("id"), str) else None
        )
        if answer is None or answer.done():
            return False
        error = response.get("error")
        if error is not None:
            answer.set_exception(_remote_error(error))
        elif "result" in response:
            answer.set_result(response["result"])
        else:
            answer.set_exception(RemoteError(INTERNAL_ERROR, "the host's answer has no result"))
        return True

    def close(self) -> None:
        """End every waiting call with PeerClosedError, and refuse new ones."""
        self._closed = True
        self._free.set()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(PeerClosedError("the host is gone"))


def _remote_error(error: Any) -> RemoteError:
    if isinstance(error, dict) and isinstance(code := error.get("code"), int):
        return RemoteError(code, str(error.get("message", "")))
    return RemoteError(INTERNAL_ERROR, "the host answered with a malformed error")
