"""A stock XTDB 1.24 server, as far as foredeck can tell: a real node behind a front that takes and
gives nothing but what XTDB's own HTTP server does.

No token; nothing is awaited but by `await-tx`, and for that a time limit is demanded, since a
stock server would wait for ever; what a query throws while it runs leaves an empty body.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx

from foredeck_xtdb.node import NodeFolder

PATHS = {
    "GET": {
        "status",
        "entity",
        "entity-tx",
        "await-tx",
        "tx-committed",
        "latest-completed-tx",
        "latest-submitted-tx",
    },
    "POST": {"query", "submit-tx"},
}


class StockServer(ThreadingHTTPServer):
    """Forwards to a node; `wrong` lists what a stock server would not have understood."""

    daemon_threads = True

    def __init__(self, node: NodeFolder) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        running = node.running()
        self.wrong: list[str] = []
        self.node = httpx.Client(
            base_url=running.url,
            headers={"Authorization": f"Bearer {node.token()}"},
            timeout=60,
            trust_env=False,
        )

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StockServer

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        target = urlsplit(self.path)
        name = target.path.removeprefix("/_xtdb/")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "Authorization" in self.headers:
            self.server.wrong.append(f"{self.path}: a token was sent")
        if name not in PATHS[self.command]:
            self.server.wrong.append(f"{self.command} {self.path}")
            self._answer(404, b'{"error":"not found"}')
            return
        params = dict(parse_qsl(target.query))
        if name == "await-tx" and "timeout" not in params:
            self.server.wrong.append(f"{self.path}: it would wait for ever")
        if name in ("submit-tx", "tx-committed"):
            params = {key: value for key, value in params.items() if not key.startswith("await")}
        answer = self.server.node.request(
            self.command,
            f"{target.path}?{urlencode(params)}",
            content=body,
            headers={k: v for k, v in self.headers.items() if k in ("Accept", "Content-Type")},
        )
        self._pass_on(name, answer)

    def _pass_on(self, name: str, answer: httpx.Response) -> None:
        if name == "query" and answer.status_code == 500:
            self._answer(200, b"")
        elif name == "status":
            told = answer.json()
            told.pop("commitFunction")
            self._answer(200, json.dumps(told).encode())
        else:
            self._answer(answer.status_code, answer.content)

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def stock_server(node: NodeFolder) -> Iterator[StockServer]:
    """A stock server for the block, which must have been asked nothing that it does not know."""
    server = StockServer(node)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        server.node.close()
        thread.join()
    assert server.wrong == []
