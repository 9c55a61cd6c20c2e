"""The JSON objects in a file of JSON lines, in bounded memory."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from foredeck.hosts.foreign_blocks import finite, is_deep
from foredeck.regular_files import open_to_read

MAX_LINE = 32 * 1024 * 1024
"""Longest line in bytes; a message with images has a few megabytes."""
MAX_FILE = 16 * 1024**3
"""Largest file in bytes, unpacked."""
MAX_PRETTY = 256 * 1024 * 1024
"""Largest value over several lines, in bytes."""
MAX_TRIES = 1000
"""Attempts to find a record in a damaged line, or the end of a long value."""
MAX_PLACES = 20
"""Line numbers that are kept for each reason."""
_BOM = b"\xef\xbb\xbf"
_WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")
_BLANK = b" \t\r\n\0"
_GZIP = b"\x1f\x8b"


class Place(NamedTuple):
    """A line's number from 1, and the CRC-32 of the file up to its end."""

    line: int
    check: int


class Line(NamedTuple):
    place: Place
    size: int
    value: dict[str, Any]


@dataclass(slots=True)
class LineTally:
    """What was not read, by reason."""

    unreadable: Counter[str] = field(default_factory=Counter)
    """Damaged or malformed lines."""
    places: dict[str, list[int]] = field(default_factory=dict)
    """The numbers of the first of them."""
    other: Counter[str] = field(default_factory=Counter)
    """Lines without anything said: titles, snapshots, counters."""

    def lose(self, reason: str, line: int) -> None:
        """Counts a line that is not wholly read."""
        self.unreadable[reason] += 1
        places = self.places.setdefault(reason, [])
        if len(places) < MAX_PLACES:
            places.append(line)


class LineFile(Protocol):
    """What lines are read from."""

    def readline(self, size: int, /) -> bytes:
        """The next line, or so many bytes of it."""
        ...


class Lines:
    """Iterates over the JSON objects of an open file.

    What cannot be read is counted in `tally`, and never ends the reading.
    """

    def __init__(self, file: LineFile, name: str = "") -> None:
        self.tally = LineTally()
        self.name = name
        self.checks: dict[int, int] = {}
        """Checksums at watched lines."""
        self._file = file
        self._watched: set[int] = set()
        self._place = Place(0, 0)

    def watch(self, line: int) -> None:
        """Keeps the checksum of a later or the last line."""
        self._watched.add(line)
        self._keep_check()

    def __iter__(self) -> Iterator[Line]:
        read = 0
        raw = self._raw()
        for data in raw:
            read += len(data)
            if read > MAX_FILE:
                self.tally.lose(f"after the first {MAX_FILE // 1024**3} GiB", self._place.line)
                return
            if data.strip(_BLANK).removeprefix(_BOM) in (b"{", b"["):
                yield from self._spread(data, raw)
            else:
                yield from self._objects(data, self._place)

    def _raw(self) -> Iterator[bytes]:
        """Lines as bytes; of a longer one `MAX_LINE`."""
        while True:
            try:
                data = self._file.readline(MAX_LINE)
                is_cut = len(data) >= MAX_LINE and not data.endswith(b"\n")
            except (EOFError, OSError, zlib.error) as error:
                # A packed file may be cut off or damaged in its middle.
                self.tally.lose(_reason_of_end(error), self._place.line)
                return
            if not data:
                return
            # By what was read of it: the checksum of a long line is that of its beginning.
            self._advance(data)
            if is_cut:
                self._pass_over()
                self.tally.lose(f"longer than {MAX_LINE // 1024**2} MiB", self._place.line)
            else:
                yield data

    def _advance(self, data: bytes) -> None:
        self._place = Place(self._place.line + 1, zlib.crc32(data, self._place.check))
        self._keep_check()

    def _keep_check(self) -> None:
        if self._place.line in self._watched:
            self.checks[self._place.line] = self._place.check

    def _pass_over(self) -> None:
        try:
            while (data := self._file.readline(MAX_LINE)) and not data.endswith(b"\n"):
                pass
        except (EOFError, OSError, zlib.error):
            return

    def _spread(self, first: bytes, raw: Iterator[bytes]) -> Iterator[Line]:
        """Objects of a value over several lines; without an end, its lines one by one."""
        parts, size, tries = [(self._place, first)], len(first), 0
        for data in raw:
            # A list may have an object on each line, behind a comma.
            is_in_list = parts[-1][1].rstrip().endswith((b"[", b","))
            is_another = data.startswith(b'{"') and not is_in_list
            parts.append((self._place, data))
            size += len(data)
            # Pretty printers put the last bracket at the beginning of a line.
            if data.startswith((b"}", b"]")):
                tries += 1
                text = b"".join(part for _, part in parts).strip(_BLANK).removeprefix(_BOM)
                try:
                    value = _JSON.decode(text.rstrip(b",").decode())
                except (ValueError, RecursionError):
                    pass
                else:
                    yield from self._sound(value, text, size, parts[0][0].line)
                    return
            if is_another or size > MAX_PRETTY or tries > MAX_TRIES:
                break
        for place, data in parts:
            yield from self._objects(data, place)

    def _objects(self, data: bytes, place: Place) -> Iterator[Line]:
        """Objects of a line; the rest is counted."""
        # Zeros are what a file system leaves of a write that a crash has interrupted.
        text = data.strip(_BLANK)
        if place.line == 1:  # editors on Windows put a mark before the first line
            text = text.removeprefix(_BOM)
        if not text:
            if data.strip():
                self.tally.lose("nothing but zeros", place.line)
            return
        try:
            decoded = text.decode()
        except UnicodeDecodeError:
            self.tally.lose("not UTF-8", place.line)
            return
        try:
            values = [_JSON.decode(decoded)]
        except (ValueError, RecursionError):
            values, is_damaged = _records_in(decoded)
            if is_damaged:
                # Without its line end it is the last one, which may be in writing, or was cut off.
                is_torn = not (values or data.endswith(b"\n")) and decoded[0] in "{["
                self.tally.lose("cut off" if is_torn else "not JSON", place.line)
        for value in values:
            yield from self._sound(value, text, len(data), place.line, place)

    def _sound(
        self, value: Any, text: bytes, size: int, line: int, place: Place | None = None
    ) -> Iterator[Line]:
        brackets = text.count(b"{") + text.count(b"[")
        is_list = isinstance(value, list) and any(isinstance(item, dict) for item in value)
        for item in value if is_list else [value]:
            if not isinstance(item, dict):
                self.tally.lose("not a JSON object", line)
            elif is_deep(item, brackets):
                self.tally.lose("nested too deep", line)
            else:
                yield Line(place or self._place, size, item)


def _records_in(text: str) -> tuple[list[dict[str, Any]], bool]:
    """Records in a damaged line, and whether a part is lost: several agents, or a killed one, leave
    such lines."""
    at, is_whole, is_damaged, records = 0, True, False, list[dict[str, Any]]()
    for _ in range(MAX_TRIES):
        value, end = _object_at(text, at)
        is_next = end == len(text) or text[end] == "{"
        if value is not None and is_next and (is_whole or _is_record(value)):
            records.append(value)
            at, is_whole = end, True
        else:
            at, is_whole, is_damaged = text.find('{"', at + 1), False, True
        if at in (-1, len(text)):
            break
    return records, is_damaged


def lines_lost(places: Mapping[str, Sequence[int]]) -> str:
    """Tells people which lines could not be read, and why."""
    names = []
    for reason, lines in places.items():
        numbers = ", ".join(map(str, lines)) + (", …" if len(lines) == MAX_PLACES else "")
        names.append(f"line{'s' * (len(lines) > 1)} {numbers} {reason}")
    return "; ".join(names)


def _object_at(text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    try:
        value, end = _JSON.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start
    while end < len(text) and text[end] in " \t\r\0":
        end += 1
    return (value if isinstance(value, dict) else None), end


def _is_record(value: dict[str, Any]) -> bool:
    """Whether an object behind a damaged one is a record of its own."""
    names = ("payload", "message", "sessionId", "timestamp", "cwd", "parentId", "record_type")
    return ("type" in value or "record_type" in value) and any(name in value for name in names)


@contextmanager
def opened_lines(path: Path) -> Iterator[Lines]:
    """The lines of a file, unpacked if gzipped. Raises `OSError`."""
    with open_to_read(path) as file:
        head = file.read(2)
        file.seek(0)
        if head == _GZIP:
            with gzip.open(file) as unpacked:
                yield Lines(unpacked, path.name)
        else:
            # PowerShell writes UTF-16 by default.
            wide = _Wide(file) if head in _WIDE_BOMS else file
            yield Lines(wide, path.name)


class _Wide:
    """A UTF-16 file, read as UTF-8."""

    def __init__(self, file: IO[bytes]) -> None:
        self._text = TextIOWrapper(file, "utf-16", errors="replace", newline="\n")

    def readline(self, size: int) -> bytes:
        return self._text.readline(size).encode()


def _reason_of_end(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "cut off (gzip)"
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return "damaged (gzip)"
    return f"reading failed: {error}"


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


_JSON = json.JSONDecoder(parse_constant=_refuse, parse_float=finite)
