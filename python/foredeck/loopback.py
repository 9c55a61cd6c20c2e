"""Servers that only this machine can reach."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from foredeck.errors import ForedeckError

LOOPBACK = "127.0.0.1"


def listening_on(ports: Sequence[int]) -> socket.socket:
    """A socket on loopback, on the first free port; 0 is any. Raises `ForedeckError`."""
    for number in ports:
        try:
            listener = socket.create_server((LOOPBACK, number))
        except OSError:
            continue
        # For each connection that is accepted: asyncio sets it only where a socket names its
        # protocol, which this one does not. Without it the second piece of an answer waits up to
        # 40 ms for the first one to be acknowledged.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    raise ForedeckError(f"port {ports[0]} is taken: leave --port out, or choose another.")
