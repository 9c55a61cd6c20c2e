"""Differences of texts in short; and whether an edit is clear of them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from foredeck.sources.tool_calls import Edit, apply_edits

MAX_CHARS = 1600
"""About 400 tokens."""
MAX_LINES = 20_000
"""Comparing longer texts would delay a tool call."""
MAX_LINE_CHARS = 300
CONTEXT_LINES = 3
"""Around each change, for people."""


def difference(old: str, new: str, limit: int = MAX_CHARS) -> str:
    """A unified diff with one line of context, within `limit` characters; the last line counts the
    rest."""
    before, after = old.split("\n"), new.split("\n")
    _, *middles = _middle(before, after, context=1)
    if max(len(middle) for middle in middles) > MAX_LINES:
        return f"(too many lines to compare: {len(new):,} characters now)"
    return _fitting([_short(line) for line in hunks(before, after, context=1)], limit)


def hunks_of(old: str, new: str) -> list[str]:
    """A unified diff's hunks, for people."""
    return hunks(old.split("\n"), new.split("\n"), CONTEXT_LINES)


def hunks(before: Sequence[str], after: Sequence[str], context: int) -> list[str]:
    """A unified diff's hunks for lines, with `context` around each."""
    # What both begin and end with is not compared: `difflib` passes over lines that are frequent in
    # a long text, so that one changed line of a file with many equal ones would count as hundreds.
    start, old, new = _middle(before, after, context)
    lines = list(difflib.unified_diff(old, new, n=context, lineterm=""))[2:]
    return [_moved(line, start) if line.startswith("@@") else line for line in lines]


def _middle(
    old: Sequence[str], new: Sequence[str], context: int
) -> tuple[int, Sequence[str], Sequence[str]]:
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    start, end = max(0, start - context), max(0, end - context)
    return start, old[start : len(old) - end], new[start : len(new) - end]


def _moved(head: str, offset: int) -> str:
    """A hunk's head, shifted by `offset`."""
    words = head.split(" ")
    for place in (1, 2):
        sign, numbers = words[place][0], words[place][1:].split(",")
        numbers[0] = str(int(numbers[0]) + offset)
        words[place] = sign + ",".join(numbers)
    return " ".join(words)


def _short(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARS else line[:MAX_LINE_CHARS] + "…"


def _fitting(lines: Sequence[str], limit: int) -> str:
    text = "\n".join(lines)
    if len(text) <= limit:
        return text
    room, used, count = limit - len("(99,999 more lines differ)") - 1, 0, 0
    for line in lines:
        if used + len(line) + 1 > room:
            break
        used, count = used + len(line) + 1, count + 1
    return "\n".join([*lines[:count], f"({len(lines) - count:,} more lines differ)"])


def is_disjoint(known: str, now: str, edits: Sequence[Edit]) -> bool:
    """Whether an edit meant for `known` does the same to `now`: each old text is once in both, with
    equal neighbours."""
    if apply_edits(known, edits) is None or apply_edits(now, edits) is None:
        return False
    return all(_has_same_surroundings(known, now, edit.old) for edit in edits)


def _has_same_surroundings(known: str, now: str, old: str) -> bool:
    if known.count(old) != 1 or now.count(old) != 1:
        return False  # it stands there only in typographic variants
    return _with_neighbours(known, old) == _with_neighbours(now, old)


def _with_neighbours(text: str, old: str) -> str:
    start = text.index(old)
    end = start + len(old)
    first = text.rfind("\n", 0, start)
    first = text.rfind("\n", 0, first) if first > 0 else -1
    last = text.find("\n", end)
    last = text.find("\n", last + 1) if last >= 0 else -1
    return text[first + 1 : last if last >= 0 else len(text)]
