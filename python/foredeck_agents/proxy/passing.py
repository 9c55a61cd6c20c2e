"""Passes answers through, and notices clients that leave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import TypeVar

import httpx
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

T = TypeVar("T")

TOKEN_HEADER = "x-foredeck-token"
"""For clients whose address others can see."""
NOT_PASSED = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
        *("transfer-encoding", "upgrade", "host", "content-length", TOKEN_HEADER),
    }
)
"""Headers that concern one connection alone."""


def streamed(
    upstream: httpx.Response, content: AsyncIterator[bytes], *, decoded: bool = False
) -> Response:
    response = StreamingResponse(content, upstream.status_code)
    response.raw_headers = _headers(upstream, decoded=decoded)
    return response


def plain(upstream: httpx.Response, body: bytes) -> Response:
    response = Response(body, upstream.status_code)
    # The body may be another than the provider's.
    length = (b"content-length", str(len(body)).encode())
    response.raw_headers = [*_headers(upstream, decoded=True), length]
    return response


def _headers(upstream: httpx.Response, *, decoded: bool) -> list[tuple[bytes, bytes]]:
    left_out = {name.encode() for name in NOT_PASSED} | (
        # httpx has unpacked it.
        {b"content-encoding"} if decoded else set()
    )
    named = ((name.lower(), value) for name, value in upstream.headers.raw)
    return [(name, value) for name, value in named if name not in left_out]


async def raw(upstream: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for piece in upstream.aiter_raw():
            yield piece
    finally:
        await upstream.aclose()


async def rest_of(parts: list[bytes], stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    async for part in stream:
        yield part


async def unless_gone(request: Request, work: Awaitable[T]) -> T:
    """The upstream's answer. Raises `ClientDisconnect` once the client has left."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_left(request))
    await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
    # From here on the streamed response watches for that itself.
    gone.cancel()
    if not task.done():
        # Else the model would go on, and be paid for, with no reader.
        task.cancel()
        raise ClientDisconnect
    return await task


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
