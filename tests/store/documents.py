"""Documents for store tests, sealed and small."""

from __future__ import annotations

from typing import Any

from foredeck.model.documents import (
    Document,
    FileDocument,
    Provenance,
    SessionDocument,
    chat_id,
    session_object_id,
    system_prompt_id,
)
from foredeck.model.documents import identity_hash as identity
from foredeck.model.sources import FilesystemSource, GitSource
from foredeck.store.protocol import Batch

PROVENANCE = Provenance(origin="test", generator="tool")

AWKWARD = [
    "",
    " ",
    "\0",
    "a\0b",
    "\u2028\u2029\x85\n\r",
    "a\udce4b",
    "\ud83d",
    "\U0001f600 and 漢字",
    "e\u0301 is not \u00e9",
    "'; DROP TABLE document; --",
    "%_\\\"'`",
    "x" * 5_000,
    "\ud800" * 600,
]
"""Texts that some layer between Python and a disk is known to change."""

AWKWARD_IDS = [
    "",
    ".",
    "..",
    "a/b//c/",
    "a:b:c",
    "a.b.",
    "~",
    "~" + "0" * 64,
    "?eid=b&history=true#c",
    "%2F%00+",
    "foredeck/doc/a",
    ":keyword",
    "\\N{}[]()",
    "nil",
    "0",
    " a ",
    "\0\u2028\x7f",
    "\ud83d",
    "\U0001f600漢",
    "x" * 401,
    "/very" * 5_000,
]
"""Ids that mean something to some layer: in addresses, EDN, names of keys, or by their length."""


def note(id: str, content: str | None = "text", **fields: Any) -> Document:
    """A document of a type that no adapter knows."""
    return Document(id=id, type="note", content=content, provenance=PROVENANCE, **fields).seal()


def file(
    path: str, content: str | None = "text", filesystem: str = "fs", **fields: Any
) -> FileDocument:
    """A file on a file system."""
    source = FilesystemSource(filesystemId=filesystem, path=path)
    return FileDocument(
        id=identity("file", source), source=source, content=content, provenance=PROVENANCE, **fields
    ).seal()


def session_wrapper(id: str, **fields: Any) -> SessionDocument:
    """The wrapper of a session."""
    refs = {"chat_ref": chat_id(id), "system_prompt_ref": system_prompt_id(id)}
    own = {"id": session_object_id(id), "session_id": id, "provenance": PROVENANCE}
    return SessionDocument(**{**own, **refs, **fields}).seal()


def foreign_file(content: str | None = "text") -> FileDocument:
    """A file that a newer version has bound to something that this one does not know."""
    source = {"type": "git", "repository": "https://host/r.git", "path": "/a.py", "n": [1, None]}
    return FileDocument.model_validate(
        {
            "id": identity("file", source),
            "source": source,
            "content": content,
            "provenance": PROVENANCE,
        }
    ).seal()


def of_commit(content: str = "as it was") -> FileDocument:
    """A file as of a commit."""
    source = GitSource(repo="example.com/team/project", ref="0a" * 20, path="src/a.py")
    return FileDocument(
        id=identity("file", source), source=source, content=content, provenance=PROVENANCE
    ).seal()


def batch(*documents: Document, **more: Any) -> Batch:
    """A commit of these documents."""
    return Batch(puts=list(documents), **more)
