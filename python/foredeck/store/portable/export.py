"""Writing a session, or a whole project, out, and the form of the file.

One JSON object per line, UTF-8, separated by `\\n`:

    {"format": "foredeck-session", "schema": 2, "session": ..., "foredeck": ...}
    or {"format": "foredeck-project", "project": {...}, "sessions": [...], ...}
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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from foredeck.errors import Missing
from foredeck.model.documents import Document
from foredeck.model.identity import encode_text, json_text, sha256_hex
from foredeck.model.kinds import kind_of, rank_of
from foredeck.store.protocol import Origin, Token
from foredeck.store.references import in_message, references
from foredeck.store.sessions import documents_of, documents_of_project, versions_of
from foredeck.store.store import Store
from foredeck.store.versions import SCHEMA
from foredeck.version import __version__

FORMAT = "foredeck-session"
PROJECT_FORMAT = "foredeck-project"
CONTENT_BYTES = 512
"""Shorter content stays in its document."""


@dataclass(frozen=True, slots=True)
class ExportSummary:
    transactions: int
    documents: int
    blobs: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ProjectPlace:
    """A project's id, its folder as agents name it, and the file system and path that identify its
    files."""

    id: str
    root: str
    filesystem_id: str
    path: str

    def holds(self, source: Mapping[str, Any]) -> bool:
        """Whether a file with this source lies in its folder."""
        is_there = source.get("filesystemId") == self.filesystem_id
        return is_there and below(self.path, str(source.get("path"))) is not None


def below(folder: str, path: str) -> str | None:
    """A path's remainder below a folder, from the slash; None elsewhere."""
    bare = folder.rstrip("/")
    rest = path[len(bare) :]
    return rest if path.startswith(bare) and rest[:1] in ("", "/") else None


def export_session(store: Store, session: str, write: Callable[[str], object]) -> ExportSummary:
    """Writes a session with objects, histories and blobs as JSON lines, deterministically.

    Raises `UnknownSession`, and `Corrupt` or `Missing` for a damaged store.
    """
    versions = versions_of(store, documents_of(store, session))
    return _export(store, {"format": FORMAT, "session": session}, versions, write)


def export_project(
    store: Store,
    project: ProjectPlace,
    sessions: Sequence[str],
    notes: Iterable[str],
    write: Callable[[str], object],
) -> ExportSummary:
    """Like `export_session`, for a project's sessions, tasks, page and memory; `notes` are ids of
    further files."""
    ids = [id for session in sessions for id in documents_of(store, session)]
    ids += [*documents_of_project(store, project.id), *notes]
    header = {"format": PROJECT_FORMAT, "project": asdict(project), "sessions": [*sessions]}
    return _export(store, header, versions_of(store, list(dict.fromkeys(ids))), write)


def _export(
    store: Store,
    header: dict[str, Any],
    versions: dict[Token, list[tuple[str, str]]],
    write: Callable[[str], object],
) -> ExportSummary:
    exporter = _Exporter(store, write)
    exporter.line({**header, "schema": SCHEMA, "foredeck": __version__})
    for transaction in store.transactions(versions):
        exporter.transaction(transaction, versions.pop(transaction.token))
    return exporter.finish()


class _Exporter:
    def __init__(self, store: Store, write: Callable[[str], object]) -> None:
        self._store = store
        self._write = write
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
        blobs = {digest: contents[digest] for digest in contents.keys() - self._written}
        for document in documents:
            refs = references(document.type, document.model_dump(exclude={"content"}))
            messages = self._fetch(refs.messages - self._expanded)
            self._expanded |= messages.keys()
            inner = {digest for data in messages.values() for digest in in_message(data)}
            new = messages.keys() | refs.needed | inner
            blobs |= messages
            blobs |= self._fetch(new - blobs.keys() - self._written)
            blobs |= self._fetch_possible(refs.possible - blobs.keys() - self._written)
        for digest in sorted(blobs.keys() - self._written):
            self._counts.blobs += 1
            self.line(blob_line(digest, blobs[digest]))
            self._written.add(digest)

    def _fetch(self, digests: set[str]) -> dict[str, bytes]:
        blobs = self._store.blobs(sorted(digests))
        if absent := {one for one in digests - blobs.keys() if not self._store.is_pruned(one)}:
            raise Missing(f"blob {min(absent)} is named by the session, but not in the store")
        return blobs

    def _fetch_possible(self, digests: set[str]) -> dict[str, bytes]:
        blobs = self._store.blobs(sorted(digests - self._absent))
        self._absent |= digests - blobs.keys()
        return blobs

    def finish(self) -> ExportSummary:
        counts = self._counts
        digest = counts.digest.hexdigest()
        self.line(counts.end())
        return ExportSummary(
            counts.transactions, counts.documents, counts.blobs, counts.size, digest
        )


def _long_contents(documents: list[Document]) -> dict[str, bytes]:
    contents = {}
    for document in documents:
        if document.content is not None and document.text_hash is not None:
            data = encode_text(document.content)
            if len(data) >= CONTENT_BYTES:
                contents[document.text_hash] = data
    return contents


@dataclass(slots=True)
class Counts:
    transactions: int = 0
    documents: int = 0
    blobs: int = 0
    size: int = 0
    digest: Any = field(default_factory=hashlib.sha256)

    def take(self, data: bytes) -> None:
        """Counts a line with its end."""
        self.size += len(data)
        self.digest.update(data)

    def end(self) -> dict[str, Any]:
        """The last line after these."""
        return {
            "end": {
                "transactions": self.transactions,
                "documents": self.documents,
                "blobs": self.blobs,
                "sha256": self.digest.hexdigest(),
            }
        }


def blob_line(digest: str, data: bytes) -> dict[str, Any]:
    """Text if UTF-8, else base64."""
    try:
        return {"blob": digest, "text": data.decode()}
    except UnicodeDecodeError:
        return {"blob": digest, "base64": base64.b64encode(data).decode()}


def encode_line(value: dict[str, Any]) -> str:
    """A line with its end; lone surrogates are escaped."""
    return json_text(value) + "\n"


def blob_of_line(line: dict[str, Any]) -> bytes:
    """A blob line's bytes, verified. Raises `ValueError`."""
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
