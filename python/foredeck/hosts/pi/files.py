"""What is read of Pi's session files beside the messages that Pi hands over."""

from __future__ import annotations

import json

from foredeck.regular_files import open_to_read

# Of the first line, which has less in any real file: another file may be one endless line.
MOST_HEADER_BYTES = 64 * 1024


def session_id_in(path: str) -> str | None:
    """The id in the header of a session file; None where there is none."""
    try:
        with open_to_read(path) as file:
            header = json.loads(file.readline(MOST_HEADER_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    found = header.get("id") if isinstance(header, dict) else None
    return found if isinstance(found, str) and found else None


def session_name(path: str) -> str:
    """What the user has called a session in Pi, as its file says last; empty where they have not,
    or the file cannot be read."""
    name = ""
    try:
        with open_to_read(path) as file:
            for line in file:
                # Few lines are worth reading as JSON.
                if b'"session_info"' not in line:
                    continue
                entry = json.loads(line)
                if isinstance(entry, dict) and entry.get("type") == "session_info":
                    said = entry.get("name")
                    name = said.strip() if isinstance(said, str) else ""
    except (OSError, ValueError, RecursionError):
        return name
    return name


def unreadable_lines(path: str) -> int:
    """How many lines of a session file are cut off or damaged; 0 where it cannot be opened."""
    # Pi skips such lines silently. The first and the last character tell most of them, and reading
    # a long file as JSON would take seconds.
    try:
        with open_to_read(path) as file:
            return sum(not _is_whole(line.strip()) for line in file)
    except (OSError, ValueError):
        return 0


def _is_whole(line: bytes) -> bool:
    return not line or (line.startswith(b"{") and line.endswith(b"}"))
