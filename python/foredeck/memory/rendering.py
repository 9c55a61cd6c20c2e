"""Entries as the model reads them: a line each, the newest first, with how far each is trusted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from foredeck.memory.entry import MemoryEntry
from foredeck.model.quoting import block, one_line
from foredeck.model.short_texts import whole_lines

MAX_BYTES = 16 * 1024
"""Of one section, however much the head has room for."""


def line_of(entry: MemoryEntry) -> str:
    """The line of an entry."""
    document, learned = entry.document, day(entry.document.learned_ms)
    text = one_line(document.fact)
    if document.native and document.native != document.fact:
        text += f" ({one_line(document.native)})"
    if document.place == "findings":
        tags = "".join(f" #{one_line(tag)}" for tag in document.tags)
        return f"- [{entry.trust}] [{learned}] {text}{tags}"
    return f"- [{entry.trust}] [{document.category}] {text} (learned {learned})"


def section_text(entries: Sequence[MemoryEntry], moved: int, limit: int) -> str:
    """The newest of `entries` that fit into `limit` characters, with a word on those that do not.

    moved  how many are left out because what they rest on has changed
    """
    lines = [line_of(entry) for entry in entries]
    changed = f"({moved} left out: the code that they rest on has changed)" if moved else ""
    for count in range(len(lines), -1, -1):
        older = f"({len(lines) - count} older left out)" if count < len(lines) else ""
        text = "\n".join(filter(None, [*lines[:count], older, changed]))
        if len(text) <= limit and len(text.encode(errors="surrogatepass")) <= MAX_BYTES:
            return text if count or not lines else ""
    return ""


def cut_text(text: str, limit: int) -> str:
    """A text of the user's own as far as it fits, in whole lines, with a word on the rest."""
    return whole_lines(block(text), limit, MAX_BYTES)


def day(time_ms: int) -> str:
    """By universal time: `2026-05-03`."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d")
