"""Printing: JSON for programs, tables and a little colour for people."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

_COLOURS = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}


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
