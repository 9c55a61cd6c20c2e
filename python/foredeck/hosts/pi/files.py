"""Pi's session files, as far as they are looked at beside the messages that Pi hands over."""

from __future__ import annotations

from pathlib import Path


def unreadable_lines(path: str) -> int:
    """How many lines of a session file are cut off or damaged, as far as their ends tell.

    Pi passes over them without a word. 0 where the file cannot be opened.
    """
    try:
        with Path(path).open("rb") as file:
            return sum(not _is_whole(line.strip()) for line in file)
    except OSError:
        return 0


def _is_whole(line: bytes) -> bool:
    return not line or (line.startswith(b"{") and line.endswith(b"}"))
