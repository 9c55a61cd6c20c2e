"""Ports on loopback that nobody listens on."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager

_LOWEST, _HIGHEST = 20_000, 30_000
"""Below the ports that systems hand out."""


def unused_port() -> int:
    """A port that survives a server's restart."""
    while True:
        port = random.SystemRandom().randrange(_LOWEST, _HIGHEST)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue


@contextmanager
def dead_url() -> Iterator[str]:
    """An address where nobody answers within the block."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))  # and does not listen
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
