"""The JSON objects in a file of JSON lines, one after the other and in bounded memory."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from foredeck.regular_files import open_to_read

MAX_LINE = 32 * 1024 * 1024
"""Bytes. A longer line is passed over: a message with images has a few megabytes."""
MAX_FILE = 16 * 1024**3
"""Bytes, unpacked. The rest of a larger file is left out."""
MAX_DEPTH = 100
"""Levels of nesting. No agent writes as many, and recursive code would fail on them."""
_BOM = b"\xef\xbb\xbf"
_WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")
_GZIP = b"\x1f\x8b"


class Place(NamedTuple):
    """Where a line is: its number from 1, and the CRC-32 of the file up to its end."""

    line: int
    check: int


class Line(NamedTuple):
    """One JSON object, and the bytes that its line has."""

    place: Place
    size: int
    value: dict[str, Any]


@dataclass(slots=True)
class LineTally:
    """What of a file was not read, by reason."""

    unreadable: Counter[str] = field(default_factory=Counter)
    """Lines that are damaged, or are not what their format says."""
    other: Counter[str] = field(default_factory=Counter)
    """Sound lines that hold nothing that was said: titles, snapshots, counters."""


class Lines:
    """Iterates over the JSON objects of an open file.

    What cannot be read is counted in `tally`, with its reason, and never ends the reading.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.tally = LineTally()
        self.checks: dict[int, int] = {}
        """The checksums at the lines that were asked for with `watch`."""
        self._file = file
        self._watched: set[int] = set()
        self._place = Place(0, 0)

    def watch(self, line: int) -> None:
        """Keep the checksum of a line that is still to come, or was the last one."""
        self._watched.add(line)
        self._keep_check()

    def __iter__(self) -> Iterator[Line]:
        read = 0
        for data in self._raw():
            read += len(data)
            if read > MAX_FILE:
                self.tally.unreadable[f"after the first {MAX_FILE // 1024**3} GiB"] += 1
                return
            value = self._object(data)
            if value is not None:
                yield Line(self._place, len(data), value)

    def _raw(self) -> Iterator[bytes]:
        """The lines as bytes; of one that is too long, its first `MAX_LINE`."""
        while True:
            try:
                data = self._file.readline(MAX_LINE)
                is_cut = len(data) == MAX_LINE and not data.endswith(b"\n")
            except (EOFError, OSError, zlib.error) as error:
                # A packed file may be cut off or damaged in its middle.
                self.tally.unreadable[_reason_of_end(error)] += 1
                return
            if not data:
                return
            # By what was read of it: the checksum of a long line is that of its beginning.
            self._advance(data)
            if is_cut:
                self._pass_over()
                self.tally.unreadable[f"longer than {MAX_LINE // 1024**2} MiB"] += 1
            else:
                yield data

    def _advance(self, data: bytes) -> None:
        self._place = Place(self._place.line + 1, zlib.crc32(data, self._place.check))
        self._keep_check()

    def _keep_check(self) -> None:
        if self._place.line in self._watched:
            self.checks[self._place.line] = self._place.check

    def _pass_over(self) -> None:
        """Read to the end of a line that is too long. What ends the file is seen by the caller."""
        try:
            while (data := self._file.readline(MAX_LINE)) and not data.endswith(b"\n"):
                pass
        except (EOFError, OSError, zlib.error):
            return

    def _object(self, data: bytes) -> dict[str, Any] | None:
        """The object of a line; None for an empty line, and for what is counted as unreadable."""
        text = data.strip()
        if self._place.line == 1:  # editors on Windows put a mark before the first line
            text = text.removeprefix(_BOM)
        if not text:
            return None
        try:
            value = _JSON.decode(text.decode())
        except UnicodeDecodeError:
            self.tally.unreadable["not UTF-8"] += 1
        except (ValueError, RecursionError):
            # Without its line end it is the last one, which may be in writing, or was cut off.
            is_torn = not data.endswith(b"\n")
            self.tally.unreadable["cut off" if is_torn else "not JSON"] += 1
        else:
            if isinstance(value, dict) and not is_deep(value, text.count(b"{") + text.count(b"[")):
                return value
            is_object = isinstance(value, dict)
            self.tally.unreadable["nested too deep" if is_object else "not a JSON object"] += 1
        return None


def is_deep(value: Any, brackets: int) -> bool:
    """Whether a JSON value is nested deeper than `MAX_DEPTH`. `brackets`: opening ones in its
    text."""
    # Hardly any line has as many, and counting them is quick.
    if brackets <= MAX_DEPTH:
        return False
    # Level by level, since recursion is what a deep value breaks.
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for item in level if isinstance(item, dict | list)]
        if not level:
            return False
        level = [
            child for item in level for child in (item.values() if isinstance(item, dict) else item)
        ]
    return any(isinstance(item, dict | list) for item in level)


@contextmanager
def opened_lines(path: Path) -> Iterator[Lines]:
    """The lines of a file, unpacked where its bytes are gzip's. Raises `OSError`."""
    with open_to_read(path) as file:
        head = file.read(2)
        file.seek(0)
        if head == _GZIP:
            with gzip.open(file) as unpacked:
                yield Lines(unpacked)  # type: ignore[arg-type]  # a GzipFile reads like a file
        else:
            lines = Lines(file)
            if head in _WIDE_BOMS:
                # PowerShell writes so by default. No line of it is UTF-8: say the reason once.
                lines.tally.unreadable["in UTF-16"] += 1
            yield lines


def _reason_of_end(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "cut off (gzip)"
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return "damaged (gzip)"
    return f"reading failed: {error}"


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


def finite(text: str) -> float:
    """A JSON number with a fraction or an exponent. Raises `ValueError` beyond a float's range."""
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is out of range")
    return value


_JSON = json.JSONDecoder(parse_constant=_refuse, parse_float=finite)
