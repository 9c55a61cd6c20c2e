"""The stdio transport on real pipes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import pytest

from foredeck.rpc import wire
from foredeck.rpc.wire import StdioTransport, TooLong


class Recorder:
    """Keeps what a transport reports; `changed` is set at each report."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, Any]] = []
        self.changed = asyncio.Event()

    def line_received(self, line: bytes) -> None:
        self._add("line", line)

    def line_too_long(self, line: TooLong) -> None:
        self._add("too long", line.size)

    def input_ended(self, torn: int) -> None:
        self._add("end", torn)

    def output_lost(self) -> None:
        self._add("lost", None)

    def _add(self, kind: str, value: Any) -> None:
        self.reports.append((kind, value))
        self.changed.set()

    async def until(self, kind: str) -> None:
        async with asyncio.timeout(30):
            while not any(report[0] == kind for report in self.reports):
                self.changed.clear()
                await self.changed.wait()


class Pipes:
    """Both directions of a transport, and the other ends."""

    def __init__(self) -> None:
        source, self.to_engine = os.pipe()
        self.from_engine, sink = os.pipe()
        self.transport = StdioTransport(source, sink)

    def close(self) -> None:
        for descriptor in (self.to_engine, self.from_engine, self.transport.source):
            try:
                os.close(descriptor)
            except OSError:
                continue


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    both = Pipes()
    yield both
    both.close()


async def test_more_lines_than_may_wait_all_arrive(pipes: Pipes) -> None:
    recorder = Recorder()
    pipes.transport.start(recorder)
    count = wire.LINES_AHEAD * 4
    await asyncio.to_thread(os.write, pipes.to_engine, b"".join(b"%d\n" % n for n in range(count)))
    os.close(pipes.to_engine)
    await recorder.until("end")
    assert recorder.reports[:-1] == [("line", b"%d" % n) for n in range(count)]
    await pipes.transport.close()


async def test_sending_never_blocks_and_closing_delivers_everything(pipes: Pipes) -> None:
    pipes.transport.start(Recorder())
    sent = [b"%d " % n + b"x" * 100_000 + b"\n" for n in range(20)]
    for line in sent:
        pipes.transport.send(line)  # far more than a pipe holds, and nobody reads yet
    reading = asyncio.create_task(asyncio.to_thread(_read_all, pipes.from_engine))
    await pipes.transport.close()
    assert await reading == b"".join(sent)


async def test_a_reader_that_never_reads_does_not_hold_up_the_end(
    pipes: Pipes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(wire, "FLUSH_SECONDS", 0.05)
    pipes.transport.start(Recorder())
    pipes.transport.send(b"x" * 1_000_000)
    await pipes.transport.close()
    assert "not delivered" in caplog.text


def _read_all(descriptor: int) -> bytes:
    found = b""
    while chunk := os.read(descriptor, 1 << 20):
        found += chunk
    return found
