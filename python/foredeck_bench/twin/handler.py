"""The scripted model's HTTP: JSON in, JSON or server-sent events out."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

from foredeck_bench.twin.script import Api, Json

_PATHS: dict[str, Api] = {
    "/v1/messages": "anthropic-messages",
    "/v1/chat/completions": "openai-completions",
    "/v1/responses": "openai-responses",
}

_GOOGLE = re.compile(r".*/models/([^/:]+):(stream)?[gG]enerateContent$")


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A JSON body, or server-sent events.

    `cut` drops the connection after the events.
    """

    status: int
    body: Json | list[str]
    retry_after_s: int | None = None
    delay_s: float = 0.0
    cut: bool = False
    done: Callable[[], None] = lambda: None


class ModelHandler(BaseHTTPRequestHandler):
    """Reads one request after another and sends what `answer` says."""

    protocol_version = "HTTP/1.1"
    answer: Callable[[Api, Json], ModelAnswer]
    other: Callable[[str, Json], Json | None]

    @classmethod
    def serving(
        cls, answer: Callable[[Api, Json], ModelAnswer], other: Callable[[str, Json], Json | None]
    ) -> type[ModelHandler]:
        """A handler bound to `answer(api, body)` and `other(path, body)`; None is a 404."""
        bound = {"answer": staticmethod(answer), "other": staticmethod(other)}
        return type("BoundHandler", (cls,), bound)

    def do_GET(self) -> None:
        self._send_other({})

    def do_POST(self) -> None:
        """Answer a model request."""
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        api = _PATHS.get(path)
        google = _GOOGLE.match(path)
        try:
            body = json.loads(raw)
        except ValueError as error:
            self._send_json(400, {"error": {"message": f"not JSON: {error}"}})
            return
        if google:
            api = "google-generative-ai"
            body |= {"model": google[1], "stream": bool(google[2])}
        if api is None:
            self._send_other(body)
            return
        betas = self.headers.get("anthropic-beta")
        if betas and isinstance(body, dict):
            body["betas"] = betas.split(",")
        self._send(type(self).answer(api, body))

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the requests are recorded."""

    def _send_other(self, body: Json) -> None:
        reply = type(self).other(self.path.partition("?")[0], body)
        if reply is None:
            self._send_json(404, {"error": {"message": f"no such path: {self.path}"}})
        else:
            self._send_json(200, reply)

    def _send(self, answer: ModelAnswer) -> None:
        time.sleep(answer.delay_s)
        try:
            if isinstance(answer.body, list):
                self._send_events(answer.body, cut=answer.cut)
            else:
                self._send_json(answer.status, answer.body, answer.retry_after_s)
        except OSError:
            self.close_connection = True
            return
        answer.done()

    def _send_json(self, status: int, body: Json, retry_after_s: int | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if retry_after_s is not None:
            self.send_header("Retry-After", str(retry_after_s))
        self.end_headers()
        self.wfile.write(data)

    def _send_events(self, events: list[str], *, cut: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            data = event.encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()
        if cut:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            self.wfile.write(b"0\r\n\r\n")
