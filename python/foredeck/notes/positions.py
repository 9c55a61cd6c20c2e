"""From inline content, as the Markdown parser hands it out, back to the text that it came from.

The parser strips what stands before and after a line of a paragraph (quote marks, list indents) and
the backslash of an escaped bar in a table cell. It says which line content begins in; where within
the line is found out here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(slots=True)
class InlinePlace:
    """Where each line of some inline content stands: offsets in the content, and in the text.

    `escapes`: offsets in the content before which one more backslash stands in the text.
    """

    content: list[int] = field(default_factory=list)
    text: list[int] = field(default_factory=list)
    escapes: list[int] = field(default_factory=list)

    def source(self, offset: int) -> int:
        """The place in the text of one character of the content."""
        line = bisect_right(self.content, offset) - 1
        shift = bisect_right(self.escapes, offset)
        return self.text[line] + offset - self.content[line] + shift


class SourceLines:
    """The lines of a text that begins `base` characters into the stored one."""

    def __init__(self, text: str, base: int) -> None:
        self._text = text
        self._base = base
        self._starts, self._ends = [0], []
        for end in _LINE_END.finditer(text):
            self._ends.append(end.start())
            self._starts.append(end.end())
        self._ends.append(len(text))
        self._cell_line, self._cell_end = -1, 0

    def start(self, line: int) -> int:
        """Where a line begins in the stored text."""
        return self._base + self._starts[line]

    def place(self, content: str, line: int, *, cell: bool) -> InlinePlace:
        """Where content that begins in `line` stands; cells of a table in the order of the line."""
        if cell:
            return self._place_cell(content, line)
        place, offset = InlinePlace(), 0
        for number, part in enumerate(content.split("\n"), line):
            stripped = part.strip()
            begin = self._find(stripped, number)
            place.content.append(offset)
            place.text.append(self._base + begin - (len(part) - len(part.lstrip())))
            offset += len(part) + 1
        return place

    def _find(self, part: str, number: int) -> int:
        """Where a stripped part begins in its line: at the end, but for headings' closing `#`."""
        number = min(number, len(self._starts) - 1)
        start = self._starts[number]
        line = self._text[start : self._ends[number]].replace("\0", "\ufffd")
        at = len(line.rstrip()) - len(part)
        if at < 0 or not line.startswith(part, at):
            at = max(line.find(part), 0)
        return start + at

    def _place_cell(self, content: str, line: int) -> InlinePlace:
        start, end = self._starts[line], self._ends[line]
        at = self._cell_end if line == self._cell_line else self._first_cell(line)
        while at < end and self._text[at] in " \t|":
            at += 1
        place = InlinePlace([0], [self._base + at])
        for offset, character in enumerate(content):
            if character == "|" and self._text.startswith("\\|", at):
                place.escapes.append(offset)
                at += 1
            at += 1
        self._cell_line, self._cell_end = line, max(at, start)
        return place

    def _first_cell(self, line: int) -> int:
        """Past quote marks before a table; they are no part of its first cell."""
        at, end = self._starts[line], self._ends[line]
        while at < end and self._text[at] in " \t>":
            at += 1
        return at
