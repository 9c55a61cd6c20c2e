"""Connections to providers, by the environment's proxies and certificates, and their answers."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import httpx
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from foredeck.errors import ForedeckError

CERTIFICATES = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "CODEX_CA_CERTIFICATE",
)
"""Variables that name further certificates."""


def upstream_client(
    environment: Mapping[str, str], tell: Callable[[str], None]
) -> httpx.AsyncClient:
    """A client for requests to providers; `tell` reports bad certificates. Raises `ForedeckError`
    for an unusable proxy."""
    try:
        with _as_httpx_reads():
            return httpx.AsyncClient(
                verify=trusted(environment, tell),
                # A model may think for minutes before its first byte.
                timeout=httpx.Timeout(None, connect=30),
                # Each stream holds a connection until its model has said all.
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            )
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        text = str(error).splitlines()[0]
        raise ForedeckError(
            f"A proxy of HTTP_PROXY, HTTPS_PROXY, ALL_PROXY or NO_PROXY cannot be used: {text}"
        ) from error


@contextmanager
def _as_httpx_reads() -> Iterator[None]:
    """The environment's proxies in httpx's form, without blanks, `[::1]` and `*.corp`."""
    given = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    for name, value in given.items():
        hosts = [_host(host) for host in re.split(r"[,\s]+", value)]
        os.environ[name] = ",".join(hosts) if name.lower() == "no_proxy" else value.strip()
    try:
        yield
    finally:
        os.environ.update(given)


def _host(given: str) -> str:
    bracketed = re.match(r"\[([^]]*)\]", given)
    return (bracketed[1] if bracketed else given.removeprefix("*")) or given


def trusted(environment: Mapping[str, str], tell: Callable[[str], None]) -> ssl.SSLContext:
    """Certificates of the system and the environment."""
    context = ssl.create_default_context()
    # Certificates that companies make for themselves often lack what this asks for.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    for name in CERTIFICATES:
        if not (named := environment.get(name)):
            continue
        try:
            if Path(named).is_dir():
                context.load_verify_locations(capath=named)
            else:
                context.load_verify_locations(cafile=named)
        except OSError as error:  # also of a file that holds no certificate
            tell(f"{name} names {named}, which cannot be used: {error.strerror or error}.")
    return context


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
