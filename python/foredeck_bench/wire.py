"""A hostile peer on the engine's pipes: whatever it sends, the next good request is answered."""

from __future__ import annotations

import json
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress, print_json, table
from foredeck.cli.registry import Command
from foredeck_bench.engine_process import INITIALIZE, PROGRAM
from foredeck_bench.process_usage import resident_mb

LINE_LIMIT = 1_000_000
"""What the engine under test takes at most, in bytes."""
_SHORT_LINES = f"from foredeck.rpc import wire; wire.LINE_LIMIT = {LINE_LIMIT}; "

PATIENCE_S = 60.0
"""An engine that does not answer for this long counts as hung."""
CHECK_EVERY = 50
"""A good request after so many hostile lines."""

Advance = Callable[[str], None]


@dataclass(slots=True)
class WireReport:
    """What was sent, and how the engines took it."""

    messages: int = 0
    bytes: int = 0
    engines: int = 0
    checks: int = 0
    """Good requests between the hostile ones."""
    answers: int = 0
    crashes: int = 0
    hangs: int = 0
    bad_answers: int = 0
    """Lines of the engine that are no JSON-RPC."""
    peak_mb: float = 0.0
    kinds: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """As `foredeck bench wire --json` prints it."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "ok": not (self.crashes or self.hangs or self.bad_answers)}


class Victim:
    """One real engine, and a thread that reads its answers."""

    def __init__(self, home: Path) -> None:
        kept = {n: text for n, text in os.environ.items() if not n.startswith("FOREDECK_")}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _SHORT_LINES + PROGRAM, "engine"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**kept, "FOREDECK_HOME": str(home)},
        )
        self.lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with suppress(OSError):  # closed under it, to see what the engine makes of that
            for line in self.process.stdout:
                self.lines.put(line)
        self.lines.put(b"")

    def send(self, data: bytes) -> None:
        """Write bytes; raises OSError where nobody reads."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def end(self) -> int | None:
        """Close stdin; the exit code, None where it does not end."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None


def run_wire(
    messages: int = 5_000, seed: int = 1, advance: Advance = lambda _note: None
) -> WireReport:
    """Send this many hostile lines to one engine after another."""
    report, chosen = WireReport(), random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="foredeck-wire-") as name:
        while report.messages < messages:
            folder = Path(name) / f"home-{report.engines}"
            _abuse(folder, min(1000, messages - report.messages), report, chosen, advance)
        for ending in ENDINGS:
            advance(ending.__name__)
            _count_end(ending, Path(name) / ending.__name__, report)
    return report


def _abuse(
    home: Path, count: int, report: WireReport, chosen: random.Random, advance: Advance
) -> None:
    victim = Victim(home)
    report.engines += 1
    try:
        victim.send(line_of({**request_of(0, "initialize"), "params": _hello(home)}))
        for number in range(count):
            kind = chosen.choice(list(HOSTILE_LINES))
            for data in HOSTILE_LINES[kind](chosen, number):
                victim.send(data)
                report.bytes += len(data)
            report.messages += 1
            report.kinds[kind] = report.kinds.get(kind, 0) + 1
            if number % CHECK_EVERY == CHECK_EVERY - 1 and not _check(victim, report):
                return
            advance(f"{report.messages} messages")
        _check(victim, report)
        report.peak_mb = max(report.peak_mb, round(resident_mb(victim.process.pid) or 0.0, 1))
    except OSError as error:
        _fault(report, "crashes", f"nobody reads: {error}, exit code {victim.process.poll()}")
    finally:
        code = victim.end()
        if code != 0 and not report.crashes and not report.hangs:
            _fault(report, "hangs" if code is None else "crashes", f"the end: exit code {code}")


def _check(victim: Victim, report: WireReport) -> bool:
    """Check that a good request is answered, and that every line before the answer is JSON-RPC."""
    report.checks += 1
    name = f"check-{report.checks}"
    victim.send(b"\n" + line_of(request_of(name, "ping")))
    while True:
        try:
            line = victim.lines.get(timeout=PATIENCE_S)
        except queue.Empty:
            _fault(report, "hangs", f"no answer after {report.messages} messages")
            return False
        if not line:
            _fault(report, "crashes", f"the engine ended after {report.messages} messages")
            return False
        report.answers += 1
        try:
            answer = json.loads(line)
            if answer.get("id") == name and answer["result"] == {}:
                return True
            if "method" not in answer and ("result" in answer) == ("error" in answer):
                _fault(report, "bad_answers", repr(line[:200]))
        except (ValueError, AttributeError, LookupError):
            _fault(report, "bad_answers", repr(line[:200]))


def _fault(report: WireReport, name: str, text: str) -> None:
    setattr(report, name, getattr(report, name) + 1)
    report.examples.append(f"{name}: {text}")


def _hello(home: Path) -> dict[str, Any]:
    return {**INITIALIZE, "cwd": str(home.parent), "pid": os.getpid()}


def _input_ends_in_mid_line(victim: Victim) -> int | None:
    victim.send(b'{"jsonrpc":"2.0","id":1,"meth')
    return victim.end()


def _output_closed(victim: Victim) -> int | None:
    """The host stops reading, but keeps asking."""
    assert victim.process.stdout is not None
    os.close(victim.process.stdout.fileno())
    with suppress(OSError):  # it has noticed
        for number in range(2000):
            victim.send(line_of(request_of(number, "ping")))
    return victim.end()


def _input_ends_at_once(victim: Victim) -> int | None:
    return victim.end()


ENDINGS: tuple[Callable[[Victim], int | None], ...] = (
    _input_ends_in_mid_line,
    _input_ends_at_once,
    _output_closed,
)


def _count_end(ending: Callable[[Victim], int | None], home: Path, report: WireReport) -> None:
    victim = Victim(home)
    report.engines += 1
    victim.send(line_of({**request_of(0, "initialize"), "params": _hello(home)}))
    victim.lines.get(timeout=PATIENCE_S)
    code = ending(victim)
    report.messages += 1
    report.kinds[ending.__name__.strip("_").replace("_", " ")] = 1
    if code != 0:
        _fault(report, "hangs" if code is None else "crashes", f"{ending.__name__}: {code}")


# The command


def _run(args: Namespace) -> int:
    with Progress("sending", total=args.messages) as progress:
        report = run_wire(args.messages, args.seed, lambda note: progress.advance(note=note))
    found = report.to_json()
    if args.json:
        print_json({"seed": args.seed, **found})
    else:
        kinds = found.pop("kinds")
        rows = [*found.items(), *((f"sent: {name}", count) for name, count in kinds.items())]
        print(table([("figure", "value"), *((n.replace("_", " "), str(v)) for n, v in rows)]))
    return 0 if found["ok"] else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--messages",
        metavar="N",
        type=positive,
        default=5_000,
        help="hostile messages (default: %(default)s)",
    )
    parser.add_argument("--seed", metavar="S", type=int, default=1, help="send the same again")
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Send the engine what no host should: bytes that are no JSON, JSON of 100,000 levels,\n"
        "lines over the limit, ids twice and answers that nobody waits for, torn and cut lines,\n"
        "line separators of Unicode, requests that are cancelled while they write, ends in\n"
        "mid-line, a host that stops reading. Every fifty messages a good request must be\n"
        "answered. Exit code 1 where an engine crashed or hung, or answered with nonsense."
    ),
    example="foredeck bench wire --json",
    configure=_configure,
    run=_run,
)


# What is sent


DEEP = 100_000


def request_of(number: object, method: str, /, **params: Any) -> dict[str, Any]:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def line_of(message: Any) -> bytes:
    """A message as it goes over the pipe."""
    return json.dumps(message, ensure_ascii=False).encode(errors="surrogatepass") + b"\n"


def _valid(chosen: random.Random, number: int) -> dict[str, Any]:
    session = chosen.choice(["s", "t", ""])
    user = {"role": "user", "content": "hello", "timestamp": number}
    return chosen.choice(
        [
            request_of(number, "ping"),
            request_of(number, "session/open", session=session, file=None, cwd="/", reason="new"),
            request_of(number, "context/assemble", session=session, keep=0, messages=[user]),
            request_of(number, "tool/call", session=session, id="t", tool="activate", input={}),
            request_of(number, "command", session=session, name="list", args=""),
            request_of(number, "tool/observed", session=session, id="x", tool="bash", content=[]),
        ]
    )


def _garbage(chosen: random.Random, _number: int) -> Iterator[bytes]:
    yield chosen.randbytes(chosen.randrange(1, 300)).replace(b"\n", b" ") + b"\n"


def _mutated(chosen: random.Random, number: int) -> Iterator[bytes]:
    data = bytearray(line_of(_valid(chosen, number))[:-1])
    for _ in range(chosen.randrange(1, 6)):
        data[chosen.randrange(len(data))] = chosen.choice(b'{}[]",:0\\e\xff\x00 ')
    yield bytes(data) + b"\n"


def _odd_values(chosen: random.Random, number: int) -> Iterator[bytes]:
    odd: list[Any] = [
        None,
        -1,
        1e308,
        2**70,
        "",
        "\ud800",
        [],
        {},
        [[]],
        True,
        "x" * 5000,
        {"a": {"b": None}},
    ]
    message = _valid(chosen, number)
    name = chosen.choice(["id", "method", "jsonrpc", "params"])
    message[name] = chosen.choice(odd)
    if isinstance(message["params"], dict) and message["params"]:
        message["params"][chosen.choice(list(message["params"]))] = chosen.choice(odd)
    yield json.dumps(message).encode() + b"\n"


def _deep(chosen: random.Random, number: int) -> Iterator[bytes]:
    opened, closed = chosen.choice([(b"[", b"]"), (b'{"a":', b"}")])
    depth = min(DEEP, (LINE_LIMIT - 200) // (len(opened) + 1))
    start = b'{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"x":' % number
    yield start + opened * depth + b"1" + closed * depth + b"}}\n"


def _oversize(chosen: random.Random, number: int) -> Iterator[bytes]:
    start = b'{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"x":"' % number
    yield start + b"x" * (LINE_LIMIT + chosen.randrange(1, 100_000)) + b'"}}\n'


def _duplicate(chosen: random.Random, number: int) -> Iterator[bytes]:
    message = _valid(chosen, number)
    yield line_of(message) + line_of(message)


def _late(chosen: random.Random, number: int) -> Iterator[bytes]:
    id = chosen.choice([number, f"e{number}", "e1", None])
    yield line_of({"jsonrpc": "2.0", "id": id, "result": {"text": "nobody asked"}})


def _torn(chosen: random.Random, number: int) -> Iterator[bytes]:
    data = line_of(_valid(chosen, number))
    at = chosen.randrange(len(data))
    yield data[:at]
    yield data[at:]


def _cut(chosen: random.Random, number: int) -> Iterator[bytes]:
    data = line_of(_valid(chosen, number))
    yield data[: chosen.randrange(1, len(data))] + b"\n"


def _separators(_chosen: random.Random, number: int) -> Iterator[bytes]:
    yield line_of(request_of(number, "ping", text="a\u2028b\u2029c\u0085d\x0be"))


def _cancelled(chosen: random.Random, number: int) -> Iterator[bytes]:
    yield line_of(_valid(chosen, number))
    yield line_of({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": number}})


def _batch(chosen: random.Random, number: int) -> Iterator[bytes]:
    yield line_of([_valid(chosen, number), 1, None])


HOSTILE_LINES: dict[str, Callable[[random.Random, int], Iterator[bytes]]] = {
    "garbage": _garbage,
    "mutated": _mutated,
    "odd values": _odd_values,
    "deep": _deep,
    "oversize": _oversize,
    "duplicate ids": _duplicate,
    "late responses": _late,
    "torn": _torn,
    "cut off": _cut,
    "line separators": _separators,
    "cancelled": _cancelled,
    "batches": _batch,
}
"""What makes the bytes of one hostile message, by its kind, from random choices and a number."""
