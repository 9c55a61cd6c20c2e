"""Whether a text is in a file of a folder: then it is unknown who wrote it.

It need not be there letter by letter: text that is copied from a page or a terminal comes on
one line, and without its markup.
"""

from __future__ import annotations

import os
import string
from collections.abc import Collection, Iterator
from pathlib import Path
from time import monotonic

from foredeck.regular_files import open_to_read

WAIT_S = 3.0
"""How long to search; it is done in a thread, and nothing waits for it."""
MOST_FILES, MOST_BYTES = 20_000, 1_000_000
"""How many files are read, and bytes of each."""
_SMALL = bytes(range(256)).lower()
_LEFT_OUT = b"*_`>#|" + string.whitespace.encode()
_SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__"})


def found_in_files(folder: Path, texts: Collection[str]) -> set[str]:
    """Those of some texts that are in a file below a folder, in whatever case of letters, over
    however many lines. All of them, where there is more to read than the bounds allow."""
    wanted = {text: _bare(text.encode(errors="replace")) for text in texts}
    found: set[str] = set()
    until = monotonic() + WAIT_S
    for number, path in enumerate(_files(folder)):
        if len(found) == len(wanted):
            break
        if number >= MOST_FILES or monotonic() > until:
            return set(wanted)
        held = _bare(_beginning(path))
        found.update(text for text, letters in wanted.items() if letters in held)
    return found


def _bare(text: bytes) -> bytes:
    """In small letters, without markup and spaces."""
    return text.translate(_SMALL, _LEFT_OUT)


def _files(folder: Path) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        yield from (Path(here, name) for name in sorted(names))


def _beginning(path: Path) -> bytes:
    """Of a regular file, never of what a link leads to or of what could block."""
    try:
        with open_to_read(path, follow=False) as file:
            return file.read(MOST_BYTES)
    except OSError:
        return b""
