"""Rewrites a file's documents: with fresh ids, or for another project."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from foredeck.model.documents import Document, identity_hash
from foredeck.model.identity import uuid7
from foredeck.model.kinds import owner_of
from foredeck.model.memory import working_id
from foredeck.model.sources import FilesystemSource
from foredeck.store.portable.check import PREFIXES, load_document
from foredeck.store.portable.export import Counts, ProjectPlace, below, encode_line
from foredeck.store.portable.staged import StagedFile

Renew = Callable[[Document, Document], None]
"""May change a rewritten document, given before and after, before sealing."""

_HASHES = frozenset({"content_hash", "metadata_view_hash"})
_REFERENCES = frozenset(
    {
        *("id", "answers", "call", "chat_ref", "entries_kept", "entries_proposed"),
        *("file_refs", "file_version_ref", "links", "moved_to", "object", "observations"),
        *("parent", "parent_ref", "previous", "provenance", "replaces", "session", "session_id"),
        *("session_ref", "superseded_by", "system", "system_prompt_ref", "toolcall_ids"),
        *("turn", "turn_ref", "version_ref"),
    }
)
"""Fields with references; all others stay, above all bytes that the model saw."""


def same(_before: Document, _now: Document) -> None:
    """Changes only ids."""


class Rewriting:
    """Rewrites documents and references between them, pinned ones first."""

    def __init__(self, renew: Renew) -> None:
        self._renew = renew
        self._hashes: dict[str, str] = {}

    def _rewritten(self, document: Document, **changes: Any) -> Document:
        fresh = document.model_dump()
        fresh |= {name: self._value(fresh[name]) for name in _REFERENCES & fresh.keys()} | changes
        rewritten = type(document).model_validate(fresh)
        self._renew(document, rewritten)
        rewritten.seal()
        self._hashes[document.content_hash] = rewritten.content_hash
        self._hashes[document.metadata_view_hash] = rewritten.metadata_view_hash
        return rewritten

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            return {
                key: self._hashes.get(item, item)
                if key in _HASHES and isinstance(item, str)
                else self._value(item)
                for key, item in value.items()
            }
        return value

    def _text(self, text: str) -> str:
        """A reference rewritten; other text unchanged."""
        return text


class FreshIds(Rewriting):
    """Gives a session's own documents fresh ids."""

    def __init__(self, session: str, own: Iterable[str], renew: Renew = same) -> None:
        """`own`: ids of the session's own documents."""
        super().__init__(renew)
        self.session = uuid7()
        self._old = session
        self._ids = {id: self._assigned(id) or _like(id) for id in own}

    def document(self, document: Document) -> Document:
        if owner_of(document.type, document.model_dump()) != self._old:
            return document
        # A nickname means one object at a time, and it means the original.
        changes: dict[str, Any] = {"nickname": None}
        if document.type == "session":
            provenance = self._value(document.provenance.model_dump())
            provenance["parent_refs"].append(document.id)
            changes["provenance"] = provenance
        return self._rewritten(document, **changes)

    def _text(self, text: str) -> str:
        if text == self._old:
            return self.session
        return self._ids.get(text) or self._assigned(text) or text

    def _assigned(self, id: str) -> str | None:
        for prefix in PREFIXES:
            start = f"{prefix}:{self._old}"
            if id == start or id.startswith(start + ":"):
                return f"{prefix}:{self.session}{id[len(start) :]}"
        return None


def _like(id: str) -> str:
    prefix, colon, _ = id.rpartition(":")
    return f"{prefix}{colon}{uuid7()}" if prefix in PREFIXES else uuid7()


class MovedProject(Rewriting):
    """Turns one project's documents into another's."""

    def __init__(
        self, old: ProjectPlace, new: ProjectPlace, files: Mapping[str, str], renew: Renew = same
    ) -> None:
        """`files`: moving files, path by id."""
        super().__init__(renew)
        self._old, self.new = old, new
        self._sources = {id: self._source(path) for id, path in files.items()}
        self._ids = {id: identity_hash("file", self._sources[id]) for id in files}
        self._ids[working_id("resource", old.id)] = working_id("resource", new.id)

    def moved_id(self, id: str) -> str:
        """The id of a document there."""
        return self._ids.get(id, id)

    def document(self, document: Document) -> Document:
        """The document as it is there."""
        body, changes = document.model_dump(exclude={"content"}), dict[str, Any]()
        if body.get("project") == self._old.id:
            changes["project"] = self.new.id
        if document.type == "session":
            # A worktree may lie anywhere.
            rest = below(self._old.root, body["cwd"]) or ""
            changes["cwd"] = self.new.root.rstrip("/") + rest or "/"
        if document.id in self._sources:
            changes["source"] = self._sources[document.id]
        return self._rewritten(document, **changes)

    def _source(self, path: str) -> FilesystemSource:
        rest = below(self._old.path, path) or ""
        place = self.new.path.rstrip("/") + rest
        return FilesystemSource(filesystemId=self.new.filesystem_id, path=place)

    def _text(self, text: str) -> str:
        return self.moved_id(text)


def moved_lines(
    staged: StagedFile, moving: MovedProject, left_out: Collection[str]
) -> Iterator[str]:
    """A checked project file's lines for its new project."""
    counts = Counts()
    for line in staged.again():
        if "document" in line and line["document"]["id"] in left_out:
            continue
        if "format" in line:
            line = {**line, "project": asdict(moving.new)}
        elif "transaction" in line:
            counts.transactions += 1
        elif "blob" in line:
            counts.blobs += 1
        elif "document" in line:
            counts.documents += 1
            fields = moving.document(load_document(line["document"], staged)).model_dump()
            if "content" not in line["document"]:
                del fields["content"]
            line = {"document": fields}
        else:
            line = counts.end()
        text = encode_line(line)
        counts.take(text.encode())
        yield text
