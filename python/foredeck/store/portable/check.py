"""The first pass of an import: completeness, hashes, ownership.

Nothing is trusted, so that a file cannot smuggle in documents of others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pydantic import ValidationError

from foredeck.errors import ImportRefused, StoreUnavailable
from foredeck.model.documents import Document, session_object_id, user_object_id
from foredeck.model.identity import decode_text
from foredeck.model.kinds import KINDS, OBJECT_TYPES, owner_of, project_of_document
from foredeck.model.memory import MemoryDocument, MemoryState, working_id
from foredeck.model.messages import is_digest
from foredeck.model.records import (
    FileChangeDocument,
    archived_id,
    call_id,
    change_id,
    member_id,
    nickname_id,
)
from foredeck.model.sources import FilesystemSource
from foredeck.store.portable.export import (
    FORMAT,
    PROJECT_FORMAT,
    Counts,
    ProjectPlace,
    blob_of_line,
)
from foredeck.store.portable.staged import ImportLimits, StagedFile, decode_line
from foredeck.store.protocol import Token
from foredeck.store.references import in_message, references
from foredeck.store.versions import check_schema, sealed_body, without_nulls

SOURCED = frozenset({"file", "pointer"})
"""Types with ids from an outside source."""

PREFIXES = tuple(type for type in KINDS if type not in SOURCED | {"toolcall", "task"})
"""Prefixes of assigned ids, by type."""


@dataclass(slots=True)
class Ownership:
    """Collects a file's claims of ownership; `check` judges them at the end."""

    sessions: dict[str, None] = field(default_factory=dict)
    """Their ids, in order."""
    project: ProjectPlace | None = None
    """The file's project."""
    own: dict[str, str] = field(default_factory=dict)
    """The sessions' own documents: session by id."""
    foreign: dict[str, str] = field(default_factory=dict)
    """Types of other documents by id."""
    owners: dict[str, str] = field(default_factory=dict)
    """Owners of other sessions' documents, by id."""
    claims: dict[str, set[str | None]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """Paths of the project folder's files by id."""
    objects: set[str] = field(default_factory=set)
    _parents: set[str] = field(default_factory=set)
    _private: set[str] = field(default_factory=set)

    def take(self, type: str, fields: Mapping[str, Any]) -> None:
        """Notes a version. Raises `ValueError` if id and fields disagree."""
        _check_id(type, fields)
        id, owner = fields["id"], owner_of(type, fields)
        if owner is not None and owner in self.sessions:
            self.own[id] = owner
        else:
            self.foreign[id] = type
            if owner is not None:
                self.owners[id] = owner
        if type == "session":
            self._check_privacy(fields)
        elif type == "member":
            self.objects.add(fields["object"])
        elif type == "file" and self.project is not None and self.project.holds(fields["source"]):
            self.files[id] = fields["source"]["path"]
        elif self._is_of_project(type, fields) or self._is_own_task(type, fields):
            self.objects.add(id)
        elif type == "turn" and fields.get("task"):
            self.objects.add(fields["task"])
        elif type == "call" and fields["parent"] is not None:
            self._parents.add(fields["parent"])
        elif type == "nickname":
            self.claims.setdefault(id, set()).add(fields["object"])

    def _is_own_task(self, type: str, fields: Mapping[str, Any]) -> bool:
        by = (fields.get("created_by"), fields.get("session"))
        return type == "task" and any(session in self.sessions for session in by)

    def _is_of_project(self, type: str, fields: Mapping[str, Any]) -> bool:
        project = project_of_document(type, fields)
        return self.project is not None and project == self.project.id

    def _check_privacy(self, fields: Mapping[str, Any]) -> None:
        if fields.get("private") is True:
            self._private.add(fields["id"])
        elif fields["id"] in self._private:
            raise ValueError(f"{fields['id']!r} is private, and cannot become public")

    def check(self) -> None:
        """Raises `ValueError` for a document that does not belong."""
        if not self.own.keys() >= set(map(session_object_id, self.sessions)):
            raise ValueError("the session's own document is missing")
        both = self.own.keys() & self.foreign.keys()
        strangers = [id for id, type in self.foreign.items() if not self._belongs(id, type)]
        for id in sorted([*both, *strangers]):
            whose = "the project" if self.project else f"session {next(iter(self.sessions))!r}"
            raise ValueError(f"{id!r} does not belong to {whose}")

    def _belongs(self, id: str, type: str) -> bool:
        if type == "call":
            return id in self._parents
        if type == "nickname":
            owners_of_name = self.claims[id]
            return any(object in self.own or object in self.foreign for object in owners_of_name)
        # Memory of other sessions, marks and what else is no object would come in as one.
        projects = ("task", "working", "memory") if self.project else ("task",)
        return type in (*OBJECT_TYPES, *projects) and (id in self.objects or id in self.files)


def _check_id(type: str, fields: Mapping[str, Any]) -> None:
    id, source = fields["id"], fields["source"]
    if not id.isprintable():
        raise ValueError(f"{id!r} has invisible characters")
    if (source is not None) != (type in SOURCED):
        raise ValueError(f"{id!r}: a {type} {'needs a' if source is None else 'has no'} source")
    prefix = id.partition(":")[0]
    if prefix != type and (type in PREFIXES or (":" in id and prefix in PREFIXES)):
        raise ValueError(f"{id!r} is no id of a {type}")
    owner = owner_of(type, fields)
    expected = {
        "session": lambda: session_object_id(fields["session_id"]),
        "member": lambda: member_id(fields["session"], fields["ordinal"]),
        "call": lambda: call_id(fields["session"], fields["ordinal"]),
        "change": lambda: change_id(fields["session"], fields["ordinal"]),
        "nickname": lambda: nickname_id(id.removeprefix("nickname:")),
        "user": lambda: user_object_id(str(fields["text_hash"])),
        "archived": lambda: archived_id(str(fields["session"])),
        "working": lambda: working_id(
            fields["scope"], str(fields["project" if fields["scope"] == "resource" else "session"])
        ),
    }.get(type)
    if expected is not None and id != expected():
        raise ValueError(f"{id!r} does not fit the fields of the {type}")
    has_prefix = type in PREFIXES and type not in ("working", "memory")
    if owner is not None and has_prefix and not f"{id}:".startswith(f"{type}:{owner}:"):
        raise ValueError(f"{id!r} does not fit the session of the {type}")


_TOKEN = re.compile(r"[!-~]{1,128}")
_ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")
_DOTS = re.compile(r"(^|[\\/])\.\.([\\/]|$)")


@dataclass(frozen=True, slots=True)
class VersionHashes:
    """A version's hashes, for comparison with the store."""

    token: Token
    identity_hash: str
    content_hash: str
    metadata_view_hash: str
    source_hash: str | None

    @classmethod
    def of(cls, token: Token, version: Document) -> VersionHashes:
        hashes = version.identity_hash, version.content_hash, version.metadata_view_hash
        return cls(token, *hashes, version.source_hash)


@dataclass(slots=True)
class Checked:
    """What a file holds."""

    times: dict[Token, int] = field(default_factory=dict)
    """Times by token, in order."""
    types: dict[str, str] = field(default_factory=dict)
    versions: dict[str, list[VersionHashes]] = field(default_factory=dict)
    """By document id, in order."""
    memory: dict[str, tuple[str, MemoryState]] = field(default_factory=dict)
    """Owner and newest state of memory entries by id."""
    counts: Counts = field(default_factory=Counts)
    ownership: Ownership = field(default_factory=Ownership)


def check_file(staged: StagedFile, limits: ImportLimits, now_ms: int) -> Checked:
    """Reads the file to its end. Raises `ImportRefused` with the line."""
    checker = _Checker(staged, limits, now_ms)
    number = 0
    for number, data in staged.read():
        try:
            checker.take(decode_line(data, limits), data)
        except ValueError as error:
            raise ImportRefused(f"line {number}: {error}") from error
    if not checker.ended:
        raise ImportRefused(f"the file is cut off after line {number}: its last line is missing")
    return checker.checked


class _Checker:
    def __init__(self, staged: StagedFile, limits: ImportLimits, now_ms: int) -> None:
        self.checked = Checked()
        self.ended = False
        self._staged = staged
        self._limits = limits
        self._latest_ms = now_ms + limits.clock_skew_ms
        self._begun = False
        self._token: Token | None = None
        self._ids: set[str] = set()
        self._messages: set[str] = set()
        """Addresses of messages that have been read."""
        self._absent: dict[str, str] = {}
        self._pruned: set[str] = set()

    def take(self, line: dict[str, Any], data: bytes) -> None:
        """Checks a line. Raises `ValueError`."""
        if self.ended:
            raise ValueError("there must be nothing after the last line")
        if not self._begun:
            self._header(line)
        elif line.keys() == {"end"}:
            self._end(line)
        else:
            self._body_line(line, data)
        self.checked.counts.take(data)

    def _header(self, line: dict[str, Any]) -> None:
        is_project = line.get("format") == PROJECT_FORMAT
        if line.get("format") != FORMAT and not is_project:
            raise ValueError("this is not an exported foredeck session")
        schema = line.get("schema")
        try:
            check_schema(schema if isinstance(schema, int) else 0)
        except StoreUnavailable as error:
            raise ValueError(str(error)) from None
        ownership = self.checked.ownership
        if is_project:
            ownership.project = self._project(line.get("project"))
        sessions = line.get("sessions") if is_project else [line.get("session")]
        if not isinstance(sessions, list):
            raise ValueError("the sessions of a project are a list")
        ownership.sessions = dict.fromkeys(self._id(session, "session id") for session in sessions)
        self._begun = True

    def _project(self, value: Any) -> ProjectPlace:
        names = [field.name for field in fields(ProjectPlace)]
        if not isinstance(value, dict) or sorted(value) != sorted(names):
            raise ValueError(f"a project has {', '.join(names)}")
        place = ProjectPlace(**{name: self._id(value[name], name) for name in names})
        self._check_path(place.root, "the project")
        if not is_digest(place.id):
            raise ValueError("a project is named by 64 hexadecimal digits")
        return place

    def _body_line(self, line: dict[str, Any], data: bytes) -> None:
        parts: dict[str, Callable[[dict[str, Any], bytes], None]] = {
            "transaction": self._transaction,
            "blob": self._blob,
            "document": self._document,
        }
        kind = next((name for name in parts if name in line), None)
        if kind is None:
            raise ValueError("neither a transaction, a blob, a document, nor the end")
        if kind != "transaction" and self._token is None:
            raise ValueError(f"a {kind} before the first transaction")
        parts[kind](line, data)

    def _transaction(self, line: dict[str, Any], _: bytes) -> None:
        fields = line["transaction"]
        if line.keys() != {"transaction"} or not isinstance(fields, dict):
            raise ValueError("a transaction has a token and a time")
        token, time_ms = fields.get("token"), fields.get("time_ms")
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise ValueError("a token is 1 to 128 visible ASCII characters")
        if type(time_ms) is not int or time_ms < 0:
            raise ValueError("a transaction's time is a number of milliseconds")
        if time_ms > self._latest_ms:
            raise ValueError("the transaction lies in the future: check the clocks")
        self._token = Token(token)
        if self._token in self.checked.times:
            raise ValueError(f"transaction {token!r} occurs twice")
        self.checked.times[self._token] = time_ms
        self.checked.counts.transactions += 1
        self._ids = set()

    def _blob(self, line: dict[str, Any], data: bytes) -> None:
        digest = line["blob"]
        if not is_digest(digest):
            raise ValueError("a blob is named by 64 hexadecimal digits")
        if self._staged.has_blob(digest):
            raise ValueError(f"blob {digest} occurs twice")
        blob_of_line(line)
        self._staged.mark_blob(digest, data)
        self.checked.counts.blobs += 1

    def _document(self, line: dict[str, Any], _: bytes) -> None:
        fields = line["document"]
        if line.keys() != {"document"} or not isinstance(fields, dict):
            raise ValueError("a document has fields")
        document = load_document(fields, self._staged)
        self._id(document.id, "id")
        if document.id in self._ids:
            raise ValueError(f"{document.id!r} occurs twice in one transaction")
        self._ids.add(document.id)
        body = sealed_body(document)
        if without_nulls(body) != without_nulls({**fields, "content": document.content}):
            raise ValueError(f"{document.id!r} holds something that its type does not know")
        self._check_paths(document)
        self._check_references(document.type, body)
        self._remember(document)
        self.checked.ownership.take(document.type, body)
        self.checked.counts.documents += 1

    def _id(self, value: Any, what: str) -> str:
        if not isinstance(value, str) or not value or len(value) > self._limits.id_length:
            raise ValueError(f"the {what} is a text of 1 to {self._limits.id_length} characters")
        return value

    def _check_paths(self, document: Document) -> None:
        extra = document.model_dump(include={"cwd", "host_file"})
        paths = [path for path in extra.values() if path]
        if document.source is not None:
            if document.id != document.identity_hash:
                raise ValueError(f"{document.id!r} is not the id that its source gives")
            if isinstance(document.source, FilesystemSource):
                paths.append(document.source.path)
        if isinstance(document, FileChangeDocument):
            paths += [*(change.path for change in document.paths), *document.uncovered]
        for path in paths:
            self._check_path(path, repr(document.id))

    def _check_path(self, path: Any, where: str) -> None:
        good = isinstance(path, str) and _ABSOLUTE.match(path) and "\0" not in path
        if not good or _DOTS.search(path) or len(path) > self._limits.path_length:
            raise ValueError(f"{where}: {str(path)[:80]!r} is not an absolute path")

    def _check_references(self, type: str, body: Mapping[str, Any]) -> None:
        refs = references(type, body)
        needed = refs.needed | refs.messages
        for address in refs.messages - self._messages:
            needed |= in_message(self._staged.blob(address))
        self._messages |= refs.messages
        for digest in sorted(needed):
            if not self._staged.has_blob(digest):
                self._absent.setdefault(digest, str(body["id"]))
        if type == "archived":
            self._pruned.update(body["messages"], body["texts"])

    def _remember(self, document: Document) -> None:
        assert self._token is not None
        checked, id = self.checked, document.id
        if checked.types.setdefault(id, document.type) != document.type:
            raise ValueError(f"{id!r} changes its type")
        versions = checked.versions.setdefault(id, [])
        if versions and versions[0].identity_hash != document.identity_hash:
            raise ValueError(f"{id!r} changes its source")
        versions.append(VersionHashes.of(self._token, document))
        if isinstance(document, MemoryDocument):
            # The oldest makes room: one of the future would stay, and never expire.
            if max(document.learned_ms, document.created_ms, document.used_ms) > self._latest_ms:
                raise ValueError(f"{id!r} was learned in the future: check the clocks")
            checked.memory[id] = document.owner, document.state

    def _end(self, line: dict[str, Any]) -> None:
        expected = self.checked.counts.end()
        counts = line["end"] if isinstance(line["end"], dict) else {}
        for name, value in expected["end"].items():
            if counts.get(name) != value or type(counts[name]) is not type(value):
                what = "hash" if name == "sha256" else f"number of {name}"
                raise ValueError(f"the {what} does not fit the lines before: the file was changed")
        if counts.keys() != expected["end"].keys():
            raise ValueError("the last line holds something unknown")
        for digest, id in self._absent.items():
            if digest not in self._pruned:
                raise ValueError(f"{id!r} needs blob {digest}, which is not before it")
        self.checked.ownership.check()
        self.ended = True


def load_document(fields: dict[str, Any], staged: StagedFile) -> Document:
    """A line's document with long content. Raises `ValueError`."""
    type_ = fields.get("type")
    kind = KINDS.get(type_) if isinstance(type_, str) else None
    if kind is None:
        raise ValueError(f"documents of type {str(type_)[:80]!r} are not known here")
    if "content" not in fields:
        digest = fields.get("text_hash")
        data = staged.blob(digest) if isinstance(digest, str) else None
        if data is None:
            raise ValueError(f"{fields.get('id')!r}: its content {digest} is not before it")
        fields = {**fields, "content": decode_text(data)}
    try:
        return kind.model_validate(fields, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{fields.get('id')!r}: {where}: {first['msg']}") from error
