"""What need not be said twice: decided when a result is first rendered.

Three rules, each a pure function over texts: the same text is visible, the lines are contained
in a visible text, or a short difference to a visible text says it all.
"""

from __future__ import annotations

import difflib
from collections import Counter

from foredeck.context.messages.items import Item
from foredeck.sources.tool_calls import parse_read_range

MIN_SAVING_CHARS = 120
"""About 30 tokens: less is not worth a word."""

MAX_DIFF_LINES = 4000
"""Comparing longer texts line by line could take longer than it saves."""


def contains_lines(text: str, lines: str) -> bool:
    """Whether `lines` are in `text` as whole lines, one after the other."""
    wanted = lines.strip("\n")
    if not wanted:
        return False
    position = text.find(wanted)
    while position != -1:
        end = position + len(wanted)
        starts_line = position == 0 or text[position - 1] == "\n"
        if starts_line and (end == len(text) or text[end] == "\n"):
            return True
        position = text.find(wanted, position + 1)
    return False


def short_difference(old: str, new: str) -> str | None:
    """A unified diff from `old` to `new` with one line of context, if it pays; else None.

    It pays where at least half of the new lines are in the old text too, and the diff with
    its head is less than half as long as the new text.
    """
    old_lines, new_lines = old.split("\n"), new.split("\n")
    if max(len(old_lines), len(new_lines)) > MAX_DIFF_LINES or not new_lines:
        return None
    shared = sum((Counter(old_lines) & Counter(new_lines)).values())
    if shared * 2 < len(new_lines):
        return None
    hunks = list(difflib.unified_diff(old_lines, new_lines, n=1, lineterm=""))[2:]
    diff = "\n".join(hunks)
    if not hunks or (len(diff) + MIN_SAVING_CHARS) * 2 >= len(new):
        return None
    return diff


def shown_lines(item: Item, text: str) -> str:
    """The lines of the file that a read shows as `text`, without what the tool says of them."""
    shown = parse_read_range(item.arguments, text)
    return "" if shown is None else shown.text
