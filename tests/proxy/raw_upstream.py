"""A provider that knows nothing of models."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class RawUpstream:
    """Answers with what it is given, and keeps what it got."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str, dict[str, str], bytes]] = []
        self.status, self.headers, self.body = 200, {"content-type": "text/plain"}, b"hello"
        self.stalls = threading.Event()
        self.left = threading.Event()
        self.cuts = False
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                upstream.serve(self)

            do_GET = do_POST  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        length = handler.headers.get("content-length")
        body = handler.rfile.read(int(length)) if length else _chunked(handler)
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.got.append((handler.command, handler.path, headers, body))
        if self.stalls.is_set():
            handler.connection.settimeout(30)
            assert handler.connection.recv(1) == b""
            self.left.set()
            return
        handler.send_response(self.status)
        for name, value in self.headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(self.body) + (10 if self.cuts else 0)))
        handler.end_headers()
        handler.wfile.write(self.body)
        if self.cuts:
            handler.close_connection = True


def _chunked(handler: BaseHTTPRequestHandler) -> bytes:
    body = b""
    while size := int(handler.rfile.readline() or b"0", 16):
        body += handler.rfile.read(size)
        handler.rfile.readline()
    return body
