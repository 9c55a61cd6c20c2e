"""Writing a session out, and the form of the file.

One JSON object per line, UTF-8, separated by `\\n`:

    {"format": "foredeck-session", "schema": 2, "session": ..., "foredeck": ...}
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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from foredeck import __version__
from foredeck.errors import Missing
from foredeck.model.canonical import encode_text, json_text, sha256_hex
from foredeck.model.documents import Document
from foredeck.model.kinds import kind_of, rank_of
from foredeck.store.protocol import Origin, Store, Token
from foredeck.store.references import Archives, in_message, references
from foredeck.store.sessions import versions_of
from foredeck.store.versions import SCHEMA

FORMAT = "foredeck-session"
CONTENT_BYTES = 512
"""Content of fewer bytes is kept in its document."""


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """What was written; `bytes` is the size of the file, `sha256` what its last line holds."""

    session: str
    transactions: int
    documents: int
    blobs: int
    bytes: int
    sha256: str


def export_session(store: Store, session: str, write: Callable[[str], object]) -> ExportSummary:
    """Write a session with its objects, whole histories and blobs as JSON lines.

    `write` gets one line after the other, line end included; a file must be opened with
    `encoding="utf-8", newline="\\n"`. The same state gives the same bytes.
    Raises `UnknownSession`, and `Corrupt` or `Missing` where the store is damaged.
    """
    versions = versions_of(store, session)
    exporter = _Exporter(store, write)
    exporter.line({"format": FORMAT, "schema": SCHEMA, "session": session, "foredeck": __version__})
    for transaction in store.transactions(versions):
        exporter.transaction(transaction, versions.pop(transaction.token))
    return exporter.finish(session)


class _Exporter:
    def __init__(self, store: Store, write: Callable[[str], object]) -> None:
        self._store = store
        self._write = write
        self._archives = Archives(store)
        self._counts = Counts()
        self._written: set[str] = set()
        self._absent: set[str] = set()
        """Hashes that name no blob."""
        self._expanded: set[str] = set()
        """Addresses of messages whose own references are written."""

    def line(self, value: dict[str, object]) -> None:
        text = encode_line(value)
        self._counts.take(text.encode())
        self._write(text)

    def transaction(self, transaction: Origin, versions: Iterable[tuple[str, str]]) -> None:
        self._counts.transactions += 1
        self.line({"transaction": {"token": transaction.token, "time_ms": transaction.time_ms}})
        ordered = sorted(versions, key=lambda version: (rank_of(version[0]), version[1]))
        documents = [self._load(type, id, transaction.token) for type, id in ordered]
        contents = _long_contents(documents)
        self._write_blobs(documents, contents)
        for document in documents:
            fields = document.model_dump()
            if document.text_hash in contents:
                del fields["content"]
            self._counts.documents += 1
            self.line({"document": fields})

    def _load(self, type: str, id: str, token: Token) -> Document:
        document = self._store.get(id, kind_of(type), token)
        if document is None:
            raise Missing(f"{type} {id!r} has no version at {token!r}")
        return document

    def _write_blobs(self, documents: list[Document], contents: dict[str, bytes]) -> None:
        """Write the blobs that these documents are the first to need."""
        blobs = {digest: contents[digest] for digest in contents.keys() - self._written}
        for document in documents:
            found = references(document.type, document.model_dump(exclude={"content"}))
            messages = self._fetch(found.messages - self._expanded)
            self._expanded |= messages.keys()
            inner = {digest for data in messages.values() for digest in in_message(data)}
            new = messages.keys() | found.needed | inner
            blobs |= messages
            blobs |= self._fetch(new - blobs.keys() - self._written)
            blobs |= self._fetch_possible(found.possible - blobs.keys() - self._written)
        for digest in sorted(blobs.keys() - self._written):
            self._counts.blobs += 1
            self.line(blob_line(digest, blobs[digest]))
            self._written.add(digest)

    def _fetch(self, digests: set[str]) -> dict[str, bytes]:
        found = self._store.blobs(sorted(digests))
        if absent := {one for one in digests - found.keys() if not self._archives.holds(one)}:
            raise Missing(f"blob {min(absent)} is named by the session, but not in the store")
        return found

    def _fetch_possible(self, digests: set[str]) -> dict[str, bytes]:
        found = self._store.blobs(sorted(digests - self._absent))
        self._absent |= digests - found.keys()
        return found

    def finish(self, session: str) -> ExportSummary:
        counts = self._counts
        digest = counts.digest.hexdigest()
        self.line(counts.end())
        return ExportSummary(
            session, counts.transactions, counts.documents, counts.blobs, counts.size, digest
        )


def _long_contents(documents: list[Document]) -> dict[str, bytes]:
    """Contents that are written as blobs, by hash."""
    contents = {}
    for document in documents:
        if document.content is not None and document.text_hash is not None:
            data = encode_text(document.content)
            if len(data) >= CONTENT_BYTES:
                contents[document.text_hash] = data
    return contents


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


def encode_line(value: dict[str, Any]) -> str:
    """A line with its line end; lone surrogates are escaped."""
    return json_text(value) + "\n"


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
