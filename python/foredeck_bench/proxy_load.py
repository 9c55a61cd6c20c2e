"""What the proxy adds to an agent's requests: time to the first byte, throughput, memory.

The upstream answers at once, so that what is measured is the way there and back. Three ways are
compared: straight to the upstream, through the proxy without foredeck (as a request without tools
goes), and with it.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.registry import Command
from foredeck_bench.arguments import print_figures
from foredeck_bench.process_usage import resident_mb, used_seconds
from foredeck_bench.scripted.anthropic_wire import events
from foredeck_bench.scripted.cache import Usage

Json = dict[str, Any]

TOOL: Json = {
    "name": "read",
    "description": "Read a file",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
}
CHARS_PER_TOKEN = 4
QUARTERS = 4
"""Times that memory is measured while sessions follow one another."""
LONG_ANSWER = 8_000_000
"""Characters of the answer that throughput is measured with."""


class _Upstream(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer with one text, which is long where the request says so."""
        body = self.rfile.read(int(self.headers["content-length"]))
        text = "x" * LONG_ANSWER if b"a long answer" in body[-200:] else "Done."
        answer = events(
            "m", "model", [{"type": "text", "text": text}], "end_turn", Usage(1, 0, 0, 1, 0)
        )
        data = "".join(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def _upstream() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Upstream)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@contextmanager
def _proxy(upstream: str, folder: Path) -> Iterator[tuple[str, int]]:
    """The address of Anthropic's API behind a proxy of its own process, and its process id."""
    command = [sys.executable, "-m", "foredeck.cli.main", "proxy", "--upstream", upstream]
    environment = {**os.environ, "FOREDECK_HOME": str(folder / "home")}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            named = re.search("ANTHROPIC_BASE_URL=(.*)", process.stdout.readline())
            assert named is not None
            yield named[1], process.pid
        finally:
            process.terminate()
            process.wait(30)


def conversation(tokens: int, number: int) -> list[Json]:
    """A chat of about so many tokens: a question, and files that were read."""
    chars = 0
    messages: list[Json] = [{"role": "user", "content": f"Look at all of it, {number}."}]
    while chars < tokens * CHARS_PER_TOKEN:
        place = len(messages)
        lines = (f"def part_{number}_{place}_{n}(value):\n    return {n}\n" for n in range(160))
        text, id = "\n".join(lines), f"call_{number}_{place}"
        use = {"type": "tool_use", "id": id, "name": "read", "input": {"path": f"f{place}.py"}}
        messages.append({"role": "assistant", "content": [use]})
        result = {"type": "tool_result", "tool_use_id": id, "content": text}
        messages.append({"role": "user", "content": [result]})
        chars += len(text)
    return messages


class _Agent:
    """One client with a connection of its own."""

    def __init__(self, url: str, session: str) -> None:
        self._client = httpx.Client(timeout=120)
        self._url, self._headers = f"{url}/v1/messages", {"x-session-id": session}

    def close(self) -> None:
        """Leave."""
        self._client.close()

    def ask(self, messages: list[Json], *, tools: bool) -> tuple[float, float, int]:
        """Seconds to the first byte of the answer and to its end, and the bytes of it."""
        body: Json = {"model": "m", "max_tokens": 9, "stream": True, "messages": messages}
        raw = json.dumps({"tools": [TOOL], **body} if tools else body).encode()
        began, first, size = time.perf_counter(), 0.0, 0
        with self._client.stream("POST", self._url, content=raw, headers=self._headers) as answer:
            answer.raise_for_status()
            for piece in answer.iter_raw():
                first = first or time.perf_counter() - began
                size += len(piece)
        return first, time.perf_counter() - began, size


def measure(tokens: int, requests: int, clients: int, sessions: int) -> Json:
    """All figures, in milliseconds, megabytes a second and megabytes."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        _upstream() as upstream,
        _proxy(upstream, Path(scratch)) as (proxied, pid),
    ):
        ways = {"direct": (upstream, True), "passed": (proxied, False), "managed": (proxied, True)}
        first: dict[str, list[float]] = {name: [] for name in ways}
        agents = {name: _Agent(url, "timed") for name, (url, _) in ways.items()}
        messages = conversation(tokens, 0)
        opening = agents["managed"].ask(messages, tools=True)[0]
        for number in range(requests):
            messages += [{"role": "assistant", "content": f"So it is, {number}."}]
            messages += [{"role": "user", "content": f"And now, {number}?"}]
            for name, (_, tools) in ways.items():
                first[name].append(agents[name].ask(messages, tools=tools)[0])
        spent = {}
        for name in ("passed", "managed"):
            before = used_seconds(pid)
            for number in range(requests):
                messages += [{"role": "assistant", "content": f"Again, {name} {number}."}]
                messages += [{"role": "user", "content": f"And {number}?"}]
                agents[name].ask(messages, tools=ways[name][1])
            after = used_seconds(pid)
            if before is not None and after is not None:
                spent[name] = round(1000 * (after - before) / requests, 1)
        alone = resident_mb(pid)
        speed = {}
        for name, (_, tools) in ways.items():
            asked: list[Json] = [{"role": "user", "content": "Give me a long answer"}]
            _, seconds, size = agents[name].ask(asked, tools=tools)
            speed[name] = size / seconds / 1e6

        def work(number: int) -> int:
            agent, said = _Agent(proxied, f"client-{number}"), conversation(tokens // 10, number)
            for turn in range(5):
                agent.ask(said, tools=True)
                said += [{"role": "assistant", "content": "Yes."}]
                said += [{"role": "user", "content": f"More, {turn}."}]
            return 5

        began_s = time.perf_counter()
        with ThreadPoolExecutor(clients) as pool:
            answered = sum(pool.map(work, range(clients)))
        took = time.perf_counter() - began_s
        many = resident_mb(pid)
        grown = []
        for number in range(sessions):
            later = _Agent(proxied, f"later-{number}")
            later.ask(conversation(tokens // 10, clients + number), tools=True)
            later.close()
            if (number + 1) % max(1, sessions // QUARTERS) == 0:
                grown.append(resident_mb(pid))
        return {
            "tokens": tokens,
            "first_byte_ms": {
                name: round(statistics.median(times) * 1000, 1) for name, times in first.items()
            },
            "first_byte_added_ms": {
                name: round(
                    1000
                    * statistics.median(
                        [a - b for a, b in zip(first[name], first["direct"], strict=True)]
                    ),
                    1,
                )
                for name in ("passed", "managed")
            },
            "processor_ms": spent,
            "first_request_ms": round(opening * 1000, 1),
            "megabytes_a_second": {name: round(value, 1) for name, value in speed.items()},
            "clients": clients,
            "answered": answered,
            "clients_s": round(took, 2),
            "sessions": sessions,
            "memory_mb": {"one": alone, "clients": many, "sessions": grown},
        }


# The command


def _run(args: Namespace) -> int:
    found = measure(args.tokens, args.requests, args.clients, args.sessions)
    print_figures(found, args)
    return 0 if found["answered"] == 5 * args.clients else 1


def _configure(parser: ArgumentParser) -> None:
    for name, default, help in (
        ("tokens", 200_000, "of the long conversation"),
        ("requests", 20, "timed on it, each way"),
        ("clients", 20, "at once, with a tenth of that each"),
        ("sessions", 200, "one after the other then, of that size"),
    ):
        parser.add_argument(
            f"--{name}",
            metavar="N",
            type=positive,
            default=default,
            help=f"{help} (default: %(default)s)",
        )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Time the first byte of answers through the proxy, with foredeck and passed on bare,\n"
        "beside the same requests straight to the upstream, which answers at once; then the\n"
        "throughput of a long answer, many clients at once, and many sessions one after the\n"
        "other, with the memory that they take. Exit code 1 where a client was not answered."
    ),
    example="foredeck bench proxy --json",
    configure=_configure,
    run=_run,
)
