"""Progress of long work, on stderr, so that stdout stays for the result."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self, TextIO

from foredeck.cli.output import raw
from foredeck.model.quoting import one_line

REDRAW_SECONDS = 0.1
LINE_SECONDS = 10.0
"""How often a line is printed where stderr is not a terminal."""


class Progress:
    """Counts steps and shows them.

        with Progress("replaying", total=15) as progress:
            for session in sessions:
                progress.advance(note=session.name)

    On a terminal one line is redrawn, and removed at the end. Elsewhere a line is printed every
    `LINE_SECONDS`, so that short work prints nothing.
    """

    def __init__(self, label: str, total: int | None = None, stream: TextIO | None = None) -> None:
        self._label = label
        self._total = total
        # The line is redrawn by what no text may do.
        self._stream = raw(stream or sys.stderr)
        self._terminal = self._stream.isatty()
        self._done = 0
        self._shown_at = time.monotonic()
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._drawn and self._terminal:
            self._write("\r\x1b[K")

    @property
    def done(self) -> int:
        """Steps done so far."""
        return self._done

    def advance(self, steps: int = 1, note: str = "") -> None:
        """Count steps; `note` says what was just done."""
        self._done += steps
        now = time.monotonic()
        if now - self._shown_at >= (REDRAW_SECONDS if self._terminal else LINE_SECONDS):
            self._shown_at = now
            self._show(note)

    def _show(self, note: str) -> None:
        of = f"/{self._total}" if self._total is not None else ""
        text = one_line(f"{self._label} {self._done}{of} {note}".rstrip())
        self._drawn = True
        self._write(f"\r\x1b[K{text[:100]}" if self._terminal else f"{text}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
