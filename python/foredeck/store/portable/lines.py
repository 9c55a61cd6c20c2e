"""The lines of an export file, and the staging that makes them safe to read twice.

One JSON object per line, UTF-8, separated by `\\n`:

    {"format": "foredeck-session", "version": 1, "session": ..., "foredeck": ...}
    {"transaction": {"token": ..., "time_ms": ...}}       in the order of the store
    {"blob": <SHA-256>, "text": ...} or "base64"          what the transaction is first to need
    {"document": {...}}                                   its versions, with their hashes
    {"end": {"transactions", "documents", "blobs", "sha256"}}

Long content is left out of a document and is the blob with its `text_hash`. The last line's
`sha256` is that of all bytes before it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import IO, Any, NoReturn

from foredeck.errors import ImportRefused
from foredeck.model.canonical import encode_text, json_text, sha256_hex

FORMAT = "foredeck-session"
VERSION = 1
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
CONTENT_BYTES = 512
"""Content of fewer bytes is kept in its document."""


@dataclass(frozen=True, slots=True)
class ImportLimits:
    """What an import accepts. Sizes in bytes; depth in nested lists and objects."""

    file_bytes: int = 16 * 2**30
    line_bytes: int = 512 * 2**20
    lines: int = 20_000_000
    line_structure: int = 8 * 2**20
    """Of one line with its strings emptied."""
    depth: int = 100
    id_length: int = 1_024
    path_length: int = 4_096
    clock_skew_ms: int = 86_400_000
    """How far a transaction's time may lie ahead of this machine's clock."""


@dataclass(slots=True)
class Counts:
    """How much a file holds, and the hash over its lines."""

    transactions: int = 0
    documents: int = 0
    blobs: int = 0
    size: int = 0
    digest: Any = field(default_factory=hashlib.sha256)

    def take(self, data: bytes) -> None:
        """Count a line, its line end included."""
        self.size += len(data)
        self.digest.update(data)

    def end(self) -> dict[str, Any]:
        """The last line of a file with these lines before it."""
        return {
            "end": {
                "transactions": self.transactions,
                "documents": self.documents,
                "blobs": self.blobs,
                "sha256": self.digest.hexdigest(),
            }
        }


def blob_line(digest: str, data: bytes) -> dict[str, Any]:
    """Text where the bytes are UTF-8, else base64."""
    try:
        return {"blob": digest, "text": data.decode()}
    except UnicodeDecodeError:
        return {"blob": digest, "base64": base64.b64encode(data).decode()}


def blob_of_line(line: dict[str, Any]) -> bytes:
    """The bytes of a blob line, checked against their hash. Raises `ValueError`."""
    if line.keys() == {"blob", "text"} and isinstance(line["text"], str):
        data = line["text"].encode()
    elif line.keys() == {"blob", "base64"} and isinstance(line["base64"], str):
        try:
            data = base64.b64decode(line["base64"], validate=True)
        except binascii.Error as error:
            raise ValueError(f"the base64 of a blob is damaged: {error}") from error
    else:
        raise ValueError("a blob has either text or base64")
    if sha256_hex(data) != line["blob"]:
        raise ValueError(f"blob {line['blob']}: its bytes have another SHA-256")
    return data


def encode_line(value: dict[str, Any]) -> str:
    """A line with its line end; lone surrogates are escaped."""
    return json_text(value) + "\n"


def decode_line(data: bytes, limits: ImportLimits) -> dict[str, Any]:
    """The object on a line. Raises `ValueError` for anything else, or one nested too deep."""
    if len(data) > limits.line_structure and _outside_texts(data) > limits.line_structure:
        raise ValueError(f"more than {limits.line_structure} bytes of it are no text")
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


def _outside_texts(data: bytes) -> int:
    """The length of a line of JSON with its strings emptied: in memory each byte of that becomes up
    to fifty, and a string stays as long as it is."""
    return len(_STRING.sub(b'""', data))


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


class StagedFile:
    """The lines of a file, copied so that they can be read again exactly as they were checked."""

    def __init__(self, lines: IO[bytes] | Iterable[bytes | str], limits: ImportLimits) -> None:
        """`lines`: an open binary file, or lines as bytes or text, with or without line ends."""
        self._source = lines
        self._limits = limits
        self._copy: IO[bytes] = TemporaryFile()  # noqa: SIM115  (closed by `close`)
        self._offsets: dict[str, int] = {}

    def close(self) -> None:
        """Drop the copy."""
        self._copy.close()

    def read(self) -> Iterator[tuple[int, bytes]]:
        """Each line's number, from 1, and its bytes with the line end; raises `ImportRefused`."""
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
        """Remember that the line just read, `data`, holds this blob."""
        self._offsets[digest] = self._copy.tell() - len(data)

    def has_blob(self, digest: str) -> bool:
        """Whether a line read so far holds this blob."""
        return digest in self._offsets

    def blob(self, digest: str) -> bytes | None:
        """The bytes of a blob read so far; None where there is none. For use between reads."""
        offset = self._offsets.get(digest)
        if offset is None:
            return None
        end = self._copy.tell()
        self._copy.seek(offset)
        line = decode_line(self._copy.readline(), self._limits)
        self._copy.seek(end)
        return blob_of_line(line)

    def again(self) -> Iterator[dict[str, Any]]:
        """The lines of the copy, decoded."""
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
