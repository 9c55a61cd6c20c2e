"""Printing: one writer to the terminal, JSON for programs, tables and a little colour for people;
progress on stderr.

Whatever is printed is shown as `printable` has it. Only contents (`print_content`) and JSON stay
byte for byte where they go into a file or a program.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self, TextIO, TypeAlias, cast

from foredeck.home import command_name
from foredeck.model.canonical import encode_text
from foredeck.model.figures import cut
from foredeck.model.quoting import one_line, printable, spelled

_COLOURS = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}
_OWN = f"\x1b{os.urandom(8).hex()}["
"""Begins a colour of ours on its way to the stream. No stored text can have it."""
_COLOUR = re.compile(re.escape(_OWN) + r"(\d*)m")


class _ShownStream:
    """A stream to which all text goes as `printable` has it, but for the colours of ours. Commands
    in what goes to stderr, which is never stored content, are as they can be typed."""

    def __init__(self, stream: TextIO, *, is_stderr: bool) -> None:
        self.raw = stream
        self._is_stderr = is_stderr

    def write(self, text: str) -> int:
        """See `TextIO`."""
        text = typed(text) if self._is_stderr and "`foredeck " in text else text
        parts = _COLOUR.split(text)  # every second part is the number of a colour
        parts[::2] = map(printable, parts[::2])
        parts[1::2] = [f"\x1b[{code}m" for code in parts[1::2]]
        self.raw.write("".join(parts))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


@contextmanager
def shown() -> Iterator[None]:
    """Let nothing that is printed meanwhile steer a terminal, on stdout and on stderr."""
    # Names, titles and texts of others may hold what steers a terminal, turns text round or hides
    # in it. Wherever it goes: a list is piped into a pager as often as not.
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        cast(TextIO, stream and _ShownStream(stream, is_stderr=stream is before[1]))
        for stream in before
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def raw(stream: TextIO) -> TextIO:
    """The stream itself, for what a program reads and for what redraws a line."""
    return stream.raw if isinstance(stream, _ShownStream) else stream


def typed(text: str) -> str:
    """The text with each command in backquotes as it can be typed here."""
    return re.sub("`foredeck(?= )", lambda _: f"`{command_name()}", text)


def print_content(text: str) -> None:
    """A stored content, as it is; on a terminal as it can be shown."""
    if sys.stdout.isatty():
        sys.stdout.write(text)
    else:
        sys.stdout.flush()  # what was printed before goes first
        sys.stdout.buffer.write(encode_text(text))
    sys.stdout.flush()


def print_json(value: Any, stream: TextIO | None = None) -> None:
    """Print one JSON value, indented; paths and other plain objects as text.

    Characters that the stream (default: stdout) cannot encode, such as lone surrogates, are
    written as JSON escapes; on a terminal so are those that steer it.
    """
    target = raw(stream or sys.stdout)
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    try:
        text.encode(target.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2, default=str)
    print(spelled(text) if target.isatty() else text, file=target)


Text: TypeAlias = str | Iterable[str]
"""A text, or its lines."""


def answer(args: Namespace, value: Any, text: Text | Callable[[], Text], code: int = 0) -> int:
    """Print what a command has found: `value` as JSON with `--json`, else `text`. Gives the exit
    code.

    Text that takes long to lay out is handed over as a function, or as a generator of its lines.
    """
    if args.json:
        print_json(value)
        return code
    shown = text() if callable(text) else text
    for line in [shown] if isinstance(shown, str) else shown:
        print(line)
    return code


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as aligned columns, two spaces apart, a line each; the last column is not padded."""
    if not rows:
        return ""
    lines = [[cell.replace("\n", " ") for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in lines) for column in range(len(lines[0]) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in lines
    )


def fitted_table(rows: Sequence[Sequence[str]]) -> str:
    """As `table`, each line cut at the width of the screen."""
    return "\n".join(cut(line.rstrip(), screen_width()) for line in table(rows).split("\n"))


def screen_width() -> int:
    """Columns of the terminal, or of `COLUMNS`; 100 where there is neither."""
    return shutil.get_terminal_size((100, 24)).columns


def coloured(text: str, colour: str, stream: TextIO | None = None) -> str:
    """The text in red, green, yellow, dim or bold, if the stream shows colours."""
    target = stream or sys.stdout
    if not shows_colours(target):
        return text
    begin = _OWN if isinstance(target, _ShownStream) else "\x1b["
    return f"{begin}{_COLOURS[colour]}m{text}{begin}0m"


def shows_colours(stream: TextIO) -> bool:
    """Only a terminal does, and only if NO_COLOR is not set (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


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

    def __exit__(self, *_: object) -> None:
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
