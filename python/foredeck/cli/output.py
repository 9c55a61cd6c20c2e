"""Prints JSON for programs, tables for people, and progress on stderr.

Everything goes out as `printable`, except contents and JSON into a file or program. Long texts on a
terminal go through the user's pager, as with git: `PAGER`, by default less.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import chain
from typing import IO, Any, Self, TextIO, TypeAlias, cast

from foredeck.home import command_name
from foredeck.model.figures import cut
from foredeck.model.identity import encode_text
from foredeck.model.quoting import one_line, printable, spelled

_COLOURS = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}
_OWN = f"\x1b{os.urandom(8).hex()}["
"""Begins a colour of ours on its way to the stream. No stored text can have it."""
_COLOUR = re.compile(re.escape(_OWN) + r"(\d*)m")


class _ShownStream:
    """A stream that shows all text as `printable`, except our colours; on stderr, commands appear
    as they can be typed."""

    def __init__(self, stream: TextIO, *, is_stderr: bool) -> None:
        self.raw = stream
        self._is_stderr = is_stderr

    def write(self, text: str) -> int:
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
    """Prevents what is printed meanwhile from steering the terminal."""
    # Names, titles and texts of others may hold what steers a terminal, turns text round or hides
    # in it. Wherever it goes: a list is piped into a pager as often as not.
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        cast("TextIO", stream and _ShownStream(stream, is_stderr=stream is before[1]))
        for stream in before
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def raw(stream: TextIO) -> TextIO:
    return stream.raw if isinstance(stream, _ShownStream) else stream


def typed(text: str) -> str:
    """The text, with commands in backquotes as they can be typed here."""
    return re.sub("`foredeck(?= )", lambda _: f"`{command_name()}", text)


def print_error(text: str) -> None:
    """Says on stderr what is wrong, in lines that fit a terminal."""
    lines, width = typed(f"foredeck: {text}").split("\n"), screen_width()
    if sys.stderr.isatty():
        lines = [hanging(line, 0) if len(line) > width else line for line in lines]
    print("\n".join(lines), file=sys.stderr)


def print_content(text: str) -> None:
    """Prints stored content as it is, or on a terminal as `printable`."""
    if sys.stdout.isatty():
        print_long([text], end="")
    else:
        sys.stdout.flush()  # what was printed before goes first
        sys.stdout.buffer.write(encode_text(text))
    sys.stdout.flush()


def print_json(value: Any, stream: TextIO | None = None) -> None:
    """Prints one JSON value, indented; characters that the stream cannot encode are escaped."""
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
    """Prints `value` as JSON with `--json`, else `text`; returns the exit code.

    Slow text can be a function, or a generator of lines.
    """
    if args.json:
        print_json(value)
        return code
    output = text() if callable(text) else text
    print_long([output] if isinstance(output, str) else output)
    return code


def print_long(lines: Iterable[str], end: str = "\n") -> None:
    """Print lines, through the user's pager where they are more than fits on the terminal."""
    is_long = False
    if pages(sys.stdout):
        lines, is_long = first_screen(lines)
    sys.stdout.flush()  # what was printed before goes first
    with pager(sys.stdout.encoding) if is_long else nullcontext() as stdin:
        target = (
            sys.stdout if stdin is None else _ShownStream(cast("TextIO", stdin), is_stderr=False)
        )
        for line in lines:
            print(line, end=end, file=cast("TextIO", target))


def table(rows: Sequence[Sequence[str]], gap: str = "  ") -> str:
    """Aligned columns, a line per row."""
    if not rows:
        return ""
    lines = [[cell.replace("\n", " ") for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in lines) for column in range(len(lines[0]) - 1)]
    return "\n".join(
        gap.join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in lines
    )


def fitted_table(rows: Sequence[Sequence[str]], *, goes_on: bool = False) -> str:
    """Like `table`, no wider than the screen: the last column is cut, or with `goes_on` continues
    below."""
    width, lines = screen_width(), table(rows).split("\n")
    if max(map(len, lines)) > width:
        lines = table(rows, " ").split("\n")
    pairs = zip(lines, rows, strict=False)
    return "\n".join(
        (_continued if goes_on else _fitted)(line.rstrip(), row[-1], width) for line, row in pairs
    )


_NARROW = 16
"""A last column with less room than this stands below its row."""


def _continued(line: str, last: str, width: int) -> str:
    if len(line) <= width:
        return line
    before = line[: len(line) - len(last)]
    if width - len(before) >= _NARROW:
        return textwrap.fill(
            last, width, initial_indent=before, subsequent_indent=" " * len(before)
        )
    below = textwrap.fill(last, width, initial_indent="    ", subsequent_indent="      ")
    return "\n".join(filter(None, (cut(before.rstrip(), width), below)))


def _fitted(line: str, last: str, width: int) -> str:
    over = len(line) - width
    if over <= 0 or not last.startswith("/") or over >= len(last) - 1:
        return cut(line, width)
    return f"{line[: -len(last)]}…{last[over + 1 :]}"


def filled(text: str) -> str:
    """Paragraphs in lines that fit the screen."""
    width = min(screen_width(), 92) - 2
    return "\n\n".join(textwrap.fill(" ".join(p.split()), width) for p in text.split("\n\n"))


def hanging(text: str, indent: int) -> str:
    """A line behind so many blanks, and what does not fit the screen below it, likewise."""
    blank = " " * indent
    return textwrap.fill(
        text,
        screen_width(),
        initial_indent=blank,
        subsequent_indent=blank,
        break_long_words=False,
        break_on_hyphens=False,
    )


def screen_width() -> int:
    """Columns of the terminal, or of `COLUMNS`, else 100."""
    return shutil.get_terminal_size((100, 24)).columns


def coloured(text: str, colour: str, stream: TextIO | None = None) -> str:
    """The text in a colour, if the stream shows colours."""
    target = stream or sys.stdout
    if not shows_colours(target):
        return text
    begin = _OWN if isinstance(target, _ShownStream) else "\x1b["
    return f"{begin}{_COLOURS[colour]}m{text}{begin}0m"


def shows_colours(stream: TextIO) -> bool:
    """Whether it is a terminal, and NO_COLOR (no-color.org) is not set."""
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
        self.clear()

    def clear(self) -> None:
        if self._drawn and self._terminal:
            self._write("\r\x1b[K")
        self._drawn = False

    def advance(self, steps: int = 1, note: str = "") -> None:
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


# The user's pager


_UNPAGED: tuple[list[str], ...] = ([], ["cat"])


def pages(stream: TextIO) -> bool:
    """Whether long texts on a stream go through a pager."""
    return stream.isatty() and os.environ.get("TERM") != "dumb" and _command() not in _UNPAGED


def _command() -> list[str]:
    try:
        return shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:  # a quote without its end
        return []


def first_screen(lines: Iterable[str]) -> tuple[Iterable[str], bool]:
    """The same lines, and whether they are more than the terminal has room for."""
    columns, rows = shutil.get_terminal_size((100, 24))
    rest, first, used = iter(lines), [], 1  # the prompt comes below
    for line in rest:
        first.append(line)
        used += sum(1 + max(len(row) - 1, 0) // columns for row in line.split("\n"))
        if used > rows:
            return chain(first, rest), True
    return first, False


@contextmanager
def pager(encoding: str) -> Iterator[IO[str] | None]:
    """The stdin of the user's pager, which may end before all is written; None where there is no
    such program."""
    # What git sets for less: end where all fits, show colours, leave the text on the screen.
    usual = {"LESS": "FRX", **os.environ}
    try:
        process = subprocess.Popen(
            _command(),
            stdin=subprocess.PIPE,
            encoding=encoding,
            errors="backslashreplace",
            env=usual,
        )
    except OSError:
        yield None
        return
    assert process.stdin is not None
    try:
        # Ctrl-C goes to the pager, too: what more there is to write is not wanted.
        with suppress(BrokenPipeError, KeyboardInterrupt):
            yield process.stdin
    finally:
        _wait(process)


def _wait(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, KeyboardInterrupt):
        process.stdin.close()
    while process.poll() is None:
        with suppress(KeyboardInterrupt):
            process.wait()
