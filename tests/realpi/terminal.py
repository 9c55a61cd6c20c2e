"""Pi in a terminal: what a person types, and what then stands on the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import pyte

from foredeck_bench.scripted.pi_process import PiInstall, PiWorkspace, pi_arguments

ENTER, ESCAPE, UP, DOWN, CTRL_C, CTRL_D = "\r", "\x1b", "\x1b[A", "\x1b[B", "\x03", "\x04"

SIZE = (160, 60)
"""Columns and rows."""
_PRIVATE = re.compile(rb"\x1b\[[<>=][0-9;]*[a-zA-Z]|\x1b[_P^].*?\x1b\\", re.DOTALL)
"""Sequences that the emulator does not know and would print."""
_TORN = re.compile(rb"\x1b(\[[0-?]*[ -/]*|[_P^][^\x1b]*\x1b?)?$")
"""The beginning of a sequence whose end comes with the next read."""
_BEGUN, _DRAWN = b"\x1b[?2026h", b"\x1b[?2026l"
"""Around all that Pi draws at once: in between the screen shows what never stood there."""


class TerminalError(Exception):
    """The screen never showed what was waited for, or Pi did not end."""


class TerminalPi:
    """An interactive Pi on a pseudo-terminal. Every wait is for something on the screen;
    `timeout_s` bounds it."""

    def __init__(
        self,
        install: PiInstall,
        workspace: PiWorkspace,
        *,
        extensions: Sequence[Path] = (),
        arguments: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        size: tuple[int, int] = SIZE,
        timeout_s: float = 240.0,
    ) -> None:
        self._timeout_s = timeout_s
        columns, rows = size
        self._drawn = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._drawn)
        self._changed = threading.Condition()
        self._written = bytearray()
        self._terminal, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._process = subprocess.Popen(
            [*install.command, *pi_arguments(extensions, arguments)],
            cwd=workspace.repo,
            env={**workspace.environment(environment), "TERM": "xterm-256color"},
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
        )
        os.close(inner)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Process id of Pi."""
        return self._process.pid

    def press(self, *keys: str) -> Self:
        """Press keys, one after the other."""
        for key in keys:
            os.write(self._terminal, key.encode())
        return self

    def submit(self, line: str) -> Self:
        """Type a line and press Enter once the editor shows it."""
        self.press(line).wait_for(line)
        return self.press(ENTER)

    def screen(self) -> str:
        """The lines on the screen, as they stand."""
        with self._changed:
            return "\n".join(line.rstrip() for line in self._drawn.display)

    @property
    def title(self) -> str:
        """What the window of the terminal is called now."""
        with self._changed:
            return self._drawn.title

    def written(self) -> str:
        """All that was written to the terminal so far."""
        with self._changed:
            return self._written.decode(errors="replace")

    def wait_for(self, text: str) -> str:
        """Wait until this text is on the screen; returns all of it."""
        return self.wait_until(lambda screen: text in screen, repr(text))

    def wait_until(self, holds: Callable[[str], bool], what: str) -> str:
        """Wait until something holds of the screen; returns it."""
        deadline = time.monotonic() + self._timeout_s
        while not holds(screen := self.screen()):
            if not self._reader.is_alive() or time.monotonic() > deadline:
                raise TerminalError(f"never on the screen: {what}\n{screen}")
            with self._changed:
                self._changed.wait(0.1)
        return screen

    def quit(self) -> int:
        """Leave with Ctrl-D at an empty editor; returns Pi's exit status."""
        self.press(CTRL_D)
        return self._ended()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End Pi if it still runs."""
        if self._process.poll() is None:
            self._process.terminate()
            self._ended()

    def _ended(self) -> int:
        try:
            code = self._process.wait(self._timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise TerminalError(f"Pi did not end:\n{self.screen()}") from None
        self._reader.join(self._timeout_s)
        return code

    def _read(self) -> None:
        held = b""
        while data := self._next():
            held += data
            whole = held[: _whole(held)]
            held = held[len(whole) :]
            with self._changed:
                self._written += whole
                self._stream.feed(_PRIVATE.sub(b"", whole))
                self._changed.notify_all()
        os.close(self._terminal)

    def _next(self) -> bytes:
        try:
            return os.read(self._terminal, 1 << 16)
        except OSError:  # nobody is left on the other side
            return b""


def _whole(data: bytes) -> int:
    """How much of it can be shown: no part of a sequence, nor of what is drawn at once."""
    begun = data.rfind(_BEGUN)
    if begun > data.rfind(_DRAWN):
        return begun
    torn = _TORN.search(data)
    return torn.start() if torn else len(data)
