"""The connections to providers: through the proxies that the environment names, and by the
certificates that it adds."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
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
"""Variables by which programs, and the agents, are told whom else to trust."""


def upstream_client(
    environment: Mapping[str, str], tell: Callable[[str], None]
) -> httpx.AsyncClient:
    """A client for requests to providers; `tell` says what is wrong with the certificates.

    Raises `ForedeckError` where the environment names a proxy that cannot be used.
    """
    try:
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


def trusted(environment: Mapping[str, str], tell: Callable[[str], None]) -> ssl.SSLContext:
    """The system's certificates and those that the environment names."""
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
