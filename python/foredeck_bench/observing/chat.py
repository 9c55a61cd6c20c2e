"""The chat that the benches observe, and an observer on loopback whose answers follow from it."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from foredeck.observations.chunks import (
    Chunk,
    ChunkRules,
    Position,
    SourceCall,
    SourceMessage,
    next_chunk,
)
from foredeck.observations.excerpt import WallTime
from foredeck.observations.observers import AskedQuestion, ModelReply
from foredeck.observations.reading import ObservedBranch
from foredeck.observations.rules import TimingRules

START_MS = 1_777_800_000_000
CLOCK = WallTime(UTC)
RULES = TimingRules(
    reflection=60, raw_count=2, raw_ms=10**13, chunk=ChunkRules(least=1000, most=4000)
)
"""Small, so that a few messages are observed, and a few observations condensed."""
_CALL = re.compile(r"calls read (\S+)")
_NOTE = re.compile(r"^- .*", re.MULTILINE)
_TIMEOUT_S = 60.0


def count(text: str) -> int:
    """Tokens, for these benches."""
    return len(text) // 4


def chat(chunks: int) -> list[SourceMessage]:
    """A chat of so many chunks: questions, each with two reads and an answer."""
    found: list[SourceMessage] = []
    for number in range(chunks):
        texts = {n: f"def load_{number}_{n}(): ...\n" * 60 for n in (1, 2)}
        found.append(_message(number, "user", f"Please read part {number} of the code."))
        for n, text in texts.items():
            path = f"src/part_{number}_{n}.py"
            call = SourceCall(f"call-{number}-{n}", "read", path, {"path": path})
            found.append(_message(number, "assistant", f"I read file {n}.", calls=(call,)))
            found.append(_message(number, "result", text, call_id=call.id, tool="read", shown=path))
        found.append(_message(number, "assistant", f"Part {number} defines two functions."))
    return found


def _message(number: int, kind: str, text: str, **fields: object) -> SourceMessage:
    address = f"{number}:{kind}:{fields.get('call_id', '')}:{text[:40]}"
    made: dict[str, object] = {
        "address": address,
        "kind": kind,
        "text": text,
        "tokens": max(1, len(text) // 2),
        "time_ms": START_MS + number * 60_000,
        "turn": number + 1,
        **fields,
    }
    return SourceMessage(**made)  # type: ignore[arg-type]


def pick(messages: Sequence[SourceMessage], position: Position) -> Chunk | None:
    """The next chunk of such a chat."""
    return next_chunk(messages, position, RULES.chunk)


def prompt_of(found: ObservedBranch, messages: list[SourceMessage]) -> str:
    """What would stand in the next prompt: reflections, observations, and the rest of the chat."""
    shown = [one.text for one in found.notes]
    return "\n\n".join([*shown, *(m.text for m in messages[found.position.messages :])])


def answer_to(question: str) -> str:
    """What the scripted observer answers: a note for each file that was read, of notes the last of
    every three."""
    if "<notes>" in question:
        lines = _NOTE.findall(question)[2::3]
    else:
        lines = [f"- 09:20 medium change: Agent read {path}" for path in _CALL.findall(question)]
    return "<observations>\n2026-05-03\n" + "\n".join(lines) + "\n</observations>"


@contextmanager
def observer_on_loopback(asked: Callable[[], None] = lambda: None) -> Iterator[int]:
    """The scripted observer as a server; its port. `asked` is called while a question waits."""

    class ObserverHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            question = json.loads(self.rfile.read(size))["text"]
            asked()
            body = json.dumps({"text": answer_to(question)}).encode()
            try:
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                return  # whoever asked has been killed

        def log_message(self, *_arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), ObserverHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ask(port: int, question: AskedQuestion) -> ModelReply:
    """Ask the observer on this port."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    try:
        connection.request("POST", "/", json.dumps({"text": question.text}))
        answered = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return ModelReply(answered["text"], model="scripted/observer")
