"""Ports of the loopback interface for servers that are started later, or never."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager

_LOWEST, _HIGHEST = 20_000, 30_000
"""Below those that systems hand out: nobody gets one of these by chance in the meantime."""


def unused_port() -> int:
    """A port that a server can be started on, stopped, and started on again."""
    while True:
        port = random.SystemRandom().randrange(_LOWEST, _HIGHEST)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue


@contextmanager
def dead_url() -> Iterator[str]:
    """An address where nobody answers, and nobody can begin to before the end of the block."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and does not listen
        yield f"http://127.0.0.1:{held.getsockname()[1]}"
