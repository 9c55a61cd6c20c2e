"""Documents like those of an agent's work, made up: what stores are filled and measured with."""

from __future__ import annotations

import hashlib
import random

from foredeck.model.documents import (
    Document,
    FileDocument,
    Provenance,
    identity_hash,
)
from foredeck.model.sources import FilesystemSource
from foredeck.store.protocol import Batch

_PROVENANCE = Provenance(origin="bench", generator="tool")
_WORDS = ["return", "value", "index", "request", "session", "const", "async", "import", "buffer"]


def text(generator: random.Random, size: int) -> str:
    """About `size` characters, no two texts alike."""
    words = [str(generator.getrandbits(32))]
    length = 0
    while length < size:
        words.append(generator.choice(_WORDS))
        length += len(words[-1]) + 1
    return " ".join(words)


def file_path(number: int) -> str:
    """The path of the n-th file."""
    return f"/repo/src/module_{number // 100}/file_{number}.ts"


def file_document(number: int, content: str) -> FileDocument:
    """A version of the n-th file."""
    source = FilesystemSource(filesystemId="bench", path=file_path(number))
    return FileDocument(
        id=identity_hash("file", source),
        source=source,
        content=content,
        provenance=_PROVENANCE,
        file_type="ts",
        char_count=len(content),
    ).seal()


def call_batch(session: str, call: int, generator: random.Random) -> Batch:
    """What one model call commits: a tool's result of 2 KB and the file that it shows, its turn,
    the session's chat, two members of the index, the call record, and the blobs of two messages.
    """
    blobs = {}
    for _ in range(2):
        data = text(generator, 1_000).encode()
        blobs[hashlib.sha256(data).hexdigest()] = data
    name = f"{session}:{call}"
    file = file_document(generator.randrange(10**9), text(generator, 4_000))
    puts = [
        file,
        _document(f"toolcall:{name}", "made-toolcall", text(generator, 2_000), chat_ref=session),
        _document(f"turn:{name}", "made-turn", None, session=session, position=call),
        _document(f"chat:{session}", "made-chat", None, session=session, turn_count=call),
        _document(f"member:{name}:0", "made-member", None, session=session, object=file.id),
        _document(
            f"member:{name}:1", "made-member", None, session=session, object=f"toolcall:{name}"
        ),
        _document(f"call:{name}", "made-call", text(generator, 1_500), session=session),
    ]
    return Batch(puts=puts, blobs=blobs)


def _document(id: str, type: str, content: str | None, **fields: object) -> Document:
    return Document(id=id, type=type, content=content, provenance=_PROVENANCE, **fields).seal()
