"""A TCP proxy in front of a node: it loses answers, as a network does, or hides from clients what
foredeck's node does beyond XTDB's own server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class FlakyProxy:
    """Forwards connections; `drop` counts answers to come that are lost on the way back.

    Only answers to requests whose first line holds `of` are lost: they have been worked on. With
    `plain` neither the commit function nor outcomes of `submit-tx` are told.
    """

    def __init__(self, port: int, of: bytes = b"submit-tx", plain: bool = False) -> None:
        self._plain = plain
        self.drop = 0
        self.dropped = 0
        self.altered: tuple[bytes, bytes] | None = None
        self._port = port
        self._of = of
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Where the proxy listens."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        node = socket.create_connection(("127.0.0.1", self._port))
        asked = [b""]

        def forward() -> None:
            with suppress(OSError):
                while data := client.recv(65_536):
                    if data.startswith((b"GET ", b"POST ")):
                        asked[0] = data.split(b"\r\n", 1)[0]
                    if self._plain:
                        data = data.replace(b"/submit-tx?await-tx", b"/submit-tx?other-one")
                    node.sendall(data)

        threading.Thread(target=forward, daemon=True).start()
        with suppress(OSError), client, node:
            while data := node.recv(65_536):
                if self.drop and self._of in asked[0]:
                    self.drop -= 1
                    self.dropped += 1
                    # Closing alone waits for the other thread to stop receiving.
                    client.shutdown(socket.SHUT_RDWR)
                    return
                if self._plain:
                    data = data.replace(b'"commitFunction"', b'"anotherServer."')
                client.sendall(data.replace(*self.altered) if self.altered else data)


@contextmanager
def flaky_proxy(
    port: int, of: bytes = b"submit-tx", *, plain: bool = False
) -> Iterator[FlakyProxy]:
    """A proxy that is closed at the end of the block."""
    proxy = FlakyProxy(port, of, plain)
    try:
        yield proxy
    finally:
        proxy.close()
