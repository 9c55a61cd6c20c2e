"""What is read of Pi's session files beside the messages that Pi hands over."""

from __future__ import annotations

from pathlib import Path


def unreadable_lines(path: str) -> int:
    """How many lines of a session file are cut off or damaged, judged by their first and last
    characters.

    Pi skips such lines silently. 0 where the file cannot be opened.
    """
    try:
        with Path(path).open("rb") as file:
            return sum(not _is_whole(line.strip()) for line in file)
    except OSError:
        return 0


def _is_whole(line: bytes) -> bool:
    return not line or (line.startswith(b"{") and line.endswith(b"}"))
