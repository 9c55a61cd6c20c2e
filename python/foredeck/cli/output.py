"""Printing: JSON for programs, tables and a little colour for people."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TextIO

_COLOURS = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""All control characters but tab and line feed."""


def print_json(value: Any, stream: TextIO | None = None) -> None:
    """Print one JSON value, indented; paths and other plain objects as text.

    Characters that the stream (default: stdout) cannot encode, such as lone surrogates, are
    written as JSON escapes.
    """
    target = stream or sys.stdout
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    try:
        text.encode(target.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2, default=str)
    print(text, file=target)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as aligned columns, two spaces apart; the last column is not padded."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in rows
    )


def coloured(text: str, colour: str, stream: TextIO | None = None) -> str:
    """The text in red, green, yellow, dim or bold, if the stream shows colours."""
    if not shows_colours(stream or sys.stdout):
        return text
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def shows_colours(stream: TextIO) -> bool:
    """Only a terminal does, and only if NO_COLOR is not set (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def short_count(count: int) -> str:
    """A number with three significant digits: 950, 12.3k, 4.56M."""
    for limit, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if count >= limit:
            value = count / limit
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}{unit}"
    return str(count)


def counted(count: int, noun: str) -> str:
    """A number with its noun: `1 call`, `1,234 calls`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def when(time_ms: int) -> str:
    """Milliseconds since 1970 as local date and time; unchanged where no calendar has that time."""
    try:
        return datetime.fromtimestamp(time_ms / 1000).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return str(time_ms)


def printable(text: str) -> str:
    """Text that is safe to print: control characters, which steer a terminal, become escapes."""
    return _CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
