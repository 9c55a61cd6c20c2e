"""Which lines of a file the result of a `read` call shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SHOWING = re.compile(
    r"\n\n\[Showing lines (?P<first>\d+)-(?P<last>\d+) of (?P<total>\d+)(?: \([^()\n]* limit\))?"
    r"\. Use offset=(?P<next>\d+) to continue\.?\]\Z"
)
_MORE = re.compile(
    r"\n\n\[(?P<more>\d+) more lines in file\. Use offset=(?P<next>\d+) to continue\.?\]\Z"
)
_NOT_SHOWN = re.compile(
    r"\n\n\.\.\. \((?P<more>\d+) more lines not shown\. "
    r"Use offset=(?P<next>\d+) to continue reading\)\Z"
)
_LONG_LINE = re.compile(r"\[Line (?P<line>\d+) is [\d.]+[KM]?B, exceeds [\d.]+[KM]?B limit\. .*\]")
_IMAGE = re.compile(r"Read image file \[image/[\w.+-]+\](?:\n|\Z)")


@dataclass(frozen=True, slots=True)
class ReadRange:
    """Lines `first` to `last` of `total`, counted from 1, and their text without any notice.

    Lines are counted as the host's tool does: a final newline is followed by one more, empty
    line. `last` is `first - 1` where no line is shown, `total` None where the result does not
    tell. `complete` means that `text` is the whole file.
    """

    first: int
    last: int
    total: int | None
    complete: bool
    text: str


def parse_read_range(arguments: Mapping[str, Any], text: str) -> ReadRange | None:
    """The lines that a successful `read` call with these arguments and this result shows.

    None for an image. A last line that only looks like the tool's notice, with numbers that do
    not fit the text, is taken as part of the file.
    """
    if _IMAGE.match(text):
        return None
    first = _first_line(arguments)
    long_line = _LONG_LINE.fullmatch(text)
    if long_line and int(long_line["line"]) == first:
        return ReadRange(first, first - 1, None, False, "")
    for notice in (_SHOWING, _MORE, _NOT_SHOWN):
        found = notice.search(text)
        if found:
            shown = _cut(text[: found.start()], first, found)
            if shown:
                return shown
    last = first + text.count("\n")
    if _number(arguments.get("limit"), last + 1) <= last - first + 1:
        # As many lines as were asked for. Of hosts that say nothing of the rest there may be more.
        return ReadRange(first, last, None, False, text)
    return ReadRange(first, last, last, first == 1, text)


def _cut(body: str, first: int, notice: re.Match[str]) -> ReadRange | None:
    """The range before a notice, None if the notice's numbers are not those of the text."""
    after = int(notice["next"])
    lines = body.count("\n") + 1
    if body == "" and after == first:
        lines = 0
    if first + lines != after:
        return None
    last = after - 1
    numbers = notice.groupdict()
    total = int(numbers["total"]) if "total" in numbers else last + int(numbers["more"])
    return ReadRange(first, last, total, False, body)


def _first_line(arguments: Mapping[str, Any]) -> int:
    return max(1, _number(arguments.get("offset"), 1))


def _number(value: Any, missing: int) -> int:
    """A number as models send it; `missing` for what is none."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return missing
    return int(value)
