"""Connections to providers, by the environment's proxies and certificates."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

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
