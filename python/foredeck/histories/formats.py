"""Which format a file is in, by what is in it: names and folders may be anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from foredeck.histories import claude_code, codex, pi
from foredeck.histories.lines import Lines, opened_lines
from foredeck.histories.records import Record

LOOKED_AT = 200
"""Lines at the beginning that may tell the format."""


class Format(NamedTuple):
    """An agent's way of keeping its sessions."""

    harness: str
    recognises: Callable[[dict[str, Any]], bool]
    """Whether a line is one that only this agent writes."""
    read: Callable[[Lines], Iterator[Record]]


FORMATS = (
    Format(claude_code.HARNESS, claude_code.is_claude_code, claude_code.read_claude_code),
    Format(codex.HARNESS, codex.is_codex, codex.read_codex),
    Format(pi.HARNESS, pi.is_pi, pi.read_pi),
)


def format_of(path: Path) -> Format | None:
    """The format of a file, None where no line at its beginning shows one. Raises `OSError`."""
    with opened_lines(path) as lines:
        for line in islice(lines, LOOKED_AT):
            for known in FORMATS:
                if known.recognises(line.value):
                    return known
    return None
