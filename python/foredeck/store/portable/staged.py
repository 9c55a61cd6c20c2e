"""An import's lines, copied to be read twice; and its limits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, Any, NoReturn

from foredeck.errors import ImportRefused
from foredeck.model.identity import encode_text
from foredeck.store.portable.export import blob_of_line

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')


@dataclass(frozen=True, slots=True)
class ImportLimits:
    """Limits of an import; sizes in bytes, depth in nested lists and objects."""

    file_bytes: int = 16 * 2**30
    line_bytes: int = 512 * 2**20
    lines: int = 20_000_000
    line_structure: int = 8 * 2**20
    """Of a line with its strings emptied."""
    depth: int = 100
    id_length: int = 1_024
    path_length: int = 4_096
    clock_skew_ms: int = 86_400_000
    """How far a transaction may be in the future."""


class StagedFile:
    def __init__(self, lines: IO[bytes] | Iterable[bytes | str], limits: ImportLimits) -> None:
        """Takes an open binary file, or lines as bytes or text."""
        self._source = lines
        self._limits = limits
        self._copy: IO[bytes] = TemporaryFile()  # noqa: SIM115  (closed by `close`)
        self._offsets: dict[str, int] = {}

    def close(self) -> None:
        """Drops the copy."""
        self._copy.close()

    def read(self) -> Iterator[tuple[int, bytes]]:
        total = 0
        for number, data in enumerate(self._raw(), start=1):
            total += len(data)
            if number > self._limits.lines:
                raise ImportRefused(f"more than {self._limits.lines} lines")
            if len(data) > self._limits.line_bytes:
                raise ImportRefused(f"line {number} has more than {self._limits.line_bytes} bytes")
            if total > self._limits.file_bytes:
                raise ImportRefused(f"the file has more than {self._limits.file_bytes} bytes")
            self._copy.write(data)
            yield number, data

    def _raw(self) -> Iterator[bytes]:
        readline = getattr(self._source, "readline", None)
        if readline is not None:
            while line := readline(self._limits.line_bytes + 1):
                yield _with_end(line)
            return
        for line in self._source:
            yield _with_end(line)

    def mark_blob(self, digest: str, data: bytes) -> None:
        self._offsets[digest] = self._copy.tell() - len(data)

    def has_blob(self, digest: str) -> bool:
        return digest in self._offsets

    def blob(self, digest: str) -> bytes | None:
        """The bytes of an earlier blob, if any. Between reads only."""
        offset = self._offsets.get(digest)
        if offset is None:
            return None
        end = self._copy.tell()
        self._copy.seek(offset)
        line = decode_line(self._copy.readline(), self._limits)
        self._copy.seek(end)
        return blob_of_line(line)

    def again(self) -> Iterator[dict[str, Any]]:
        """The copy's lines, decoded."""
        position = 0
        while True:
            self._copy.seek(position)
            data = self._copy.readline()
            if not data:
                return
            position += len(data)
            yield decode_line(data, self._limits)


def _with_end(line: bytes | str) -> bytes:
    data = encode_text(line) if isinstance(line, str) else line
    return data if data.endswith(b"\n") else data + b"\n"


def decode_line(data: bytes, limits: ImportLimits) -> dict[str, Any]:
    """A line's object. Raises `ValueError` for others, and for excessive nesting."""
    # In memory a byte outside of the strings becomes up to fifty; a string stays as long as it is.
    most = limits.line_structure
    if len(data) > most and len(_STRING.sub(b'""', data)) > most:
        raise ValueError(f"more than {most} bytes of it are no text")
    try:
        value = json.loads(data.decode(), parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deep") from None
    except ValueError as error:
        raise ValueError(f"not JSON in UTF-8, as `foredeck export` writes ({error})") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    _check_depth(value, limits.depth)
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _check_depth(value: Any, limit: int) -> None:
    level = [value]
    for _ in range(limit + 1):
        level = [
            child
            for item in level
            if isinstance(item, list | dict)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise ValueError(f"nested deeper than {limit}")
