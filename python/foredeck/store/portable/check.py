"""The first pass of an import: is the file whole, is every hash right, does it hang together?

Nothing in the file is trusted. Each document must be sealed, each blob have its hash, and the last
line's counts and hash must fit. Each document must belong to the session, or to an object that it
has met: a file could otherwise bring documents that have nothing to do with its session into a
store. The store is not read here; see `importing.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import IO, Any, NoReturn

from pydantic import ValidationError

from foredeck.errors import ImportRefused, StoreUnavailable
from foredeck.model.canonical import decode_text, encode_text
from foredeck.model.documents import Document, session_object_id, user_object_id
from foredeck.model.kinds import KINDS, OBJECT_TYPES, owner_of
from foredeck.model.memory import working_id
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
from foredeck.store.portable.export import FORMAT, Counts, blob_of_line
from foredeck.store.protocol import Token
from foredeck.store.references import in_message, references
from foredeck.store.versions import check_schema, sealed_body, without_nulls

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')


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


SOURCED = frozenset({"file", "pointer"})
"""Types whose objects are bound to something outside, by which they have their ids."""

PREFIXES = tuple(type for type in KINDS if type not in SOURCED | {"toolcall", "task"})
"""First parts of assigned ids; they belong to one type each. A tool call has its provider's id, a
task a UUID."""


@dataclass(slots=True)
class Ownership:
    """Collects what a file says about who belongs to whom; `check` judges it at the end."""

    session: str = ""
    own: set[str] = field(default_factory=set)
    foreign: dict[str, str] = field(default_factory=dict)
    """Types of the documents that are not the session's own, by id."""
    owners: dict[str, str] = field(default_factory=dict)
    """Of those that are another session's own: that session, by id."""
    claims: dict[str, set[str | None]] = field(default_factory=dict)
    """By id of a nickname's document: all objects that it ever named, None where it named none."""
    _objects: set[str] = field(default_factory=set)
    _parents: set[str] = field(default_factory=set)
    _private: set[str] = field(default_factory=set)

    def take(self, type: str, fields: Mapping[str, Any]) -> None:
        """Note one version. Raises `ValueError` where its id does not fit its fields."""
        _check_id(type, fields)
        id, owner = fields["id"], owner_of(type, fields)
        if owner == self.session:
            self.own.add(id)
        else:
            self.foreign[id] = type
            if owner is not None:
                self.owners[id] = owner
        if type == "session":
            self._check_privacy(fields)
        elif type == "member":
            self._objects.add(fields["object"])
        elif type == "task" and self.session in (fields.get("created_by"), fields.get("session")):
            self._objects.add(id)
        elif type == "turn" and fields.get("task"):
            self._objects.add(fields["task"])
        elif type == "call" and fields["parent"] is not None:
            self._parents.add(fields["parent"])
        elif type == "nickname":
            self.claims.setdefault(id, set()).add(fields["object"])

    def _check_privacy(self, fields: Mapping[str, Any]) -> None:
        """A private session is private for good."""
        if fields.get("private") is True:
            self._private.add(fields["id"])
        elif fields["id"] in self._private:
            raise ValueError(f"{fields['id']!r} is private, and cannot become public")

    def check(self) -> None:
        """Raise `ValueError` for a document that does not belong to the session."""
        if session_object_id(self.session) not in self.own:
            raise ValueError("the session's own document is missing")
        both = self.own & self.foreign.keys()
        strangers = [id for id, type in self.foreign.items() if not self._belongs(id, type)]
        for id in sorted([*both, *strangers]):
            raise ValueError(f"{id!r} does not belong to session {self.session!r}")

    def _belongs(self, id: str, type: str) -> bool:
        if type == "call":
            return id in self._parents
        if type == "nickname":
            return not self.claims[id].isdisjoint(self.own | self.foreign.keys())
        # Memory of other sessions, marks and what else is no object would come in as one.
        return type in (*OBJECT_TYPES, "task") and id in self._objects


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
        # A project's page belongs to no session: it never comes with one.
        "working": lambda: working_id("thread", str(fields["session"])),
    }.get(type)
    if expected is not None and id != expected():
        raise ValueError(f"{id!r} does not fit the fields of the {type}")
    named = type in PREFIXES and type not in ("working", "memory")
    if owner is not None and named and not f"{id}:".startswith(f"{type}:{owner}:"):
        raise ValueError(f"{id!r} does not fit the session of the {type}")


_TOKEN = re.compile(r"[!-~]{1,128}")
_ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")
_DOTS = re.compile(r"(^|[\\/])\.\.([\\/]|$)")


@dataclass(frozen=True, slots=True)
class VersionHashes:
    """One version in the file, as far as it is compared with the store."""

    token: Token
    identity_hash: str
    content_hash: str
    metadata_view_hash: str
    source_hash: str | None

    @classmethod
    def of(cls, token: Token, version: Document) -> VersionHashes:
        """Of a version, or of a view of one."""
        hashes = version.identity_hash, version.content_hash, version.metadata_view_hash
        return cls(token, *hashes, version.source_hash)


@dataclass(slots=True)
class Checked:
    """What a file holds."""

    session: str = ""
    times: dict[Token, int] = field(default_factory=dict)
    """Time by token, in the order of the file."""
    types: dict[str, str] = field(default_factory=dict)
    versions: dict[str, list[VersionHashes]] = field(default_factory=dict)
    """By document id, in the order of the file."""
    counts: Counts = field(default_factory=Counts)
    ownership: Ownership = field(default_factory=Ownership)


def check_file(staged: StagedFile, limits: ImportLimits, now_ms: int) -> Checked:
    """Read the file to its end. Raises `ImportRefused` naming the line."""
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
        self._now_ms = now_ms
        self._token: Token | None = None
        self._ids: set[str] = set()
        """Ids of the documents in the transaction so far."""
        self._messages: set[str] = set()
        """Addresses of messages that have been read."""
        self._absent: dict[str, str] = {}
        """By the hash of a blob that is not there: the first document that needs it."""
        self._pruned: set[str] = set()
        """Hashes of what was pruned: they come after the documents that need them."""

    def take(self, line: dict[str, Any], data: bytes) -> None:
        """Check one line. Raises `ValueError`."""
        if self.ended:
            raise ValueError("there must be nothing after the last line")
        if not self.checked.session:
            self._header(line)
        elif line.keys() == {"end"}:
            self._end(line)
        else:
            self._body_line(line, data)
        self.checked.counts.take(data)

    def _header(self, line: dict[str, Any]) -> None:
        if line.get("format") != FORMAT:
            raise ValueError("this is not an exported foredeck session")
        schema = line.get("schema")
        try:
            check_schema(schema if isinstance(schema, int) else 0)
        except StoreUnavailable as error:
            raise ValueError(str(error)) from None
        session = self._id(line.get("session"), "session id")
        self.checked.session = self.checked.ownership.session = session

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
        if time_ms > self._now_ms + self._limits.clock_skew_ms:
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
            good = isinstance(path, str) and _ABSOLUTE.match(path) and "\0" not in path
            if not good or _DOTS.search(path) or len(path) > self._limits.path_length:
                raise ValueError(f"{document.id!r}: {str(path)[:80]!r} is not an absolute path")

    def _check_references(self, type: str, body: Mapping[str, Any]) -> None:
        """Every blob without which the session could not be shown must be in the file."""
        found = references(type, body)
        needed = found.needed | found.messages
        for address in found.messages - self._messages:
            needed |= in_message(self._staged.blob(address))
        self._messages |= found.messages
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

    def _end(self, line: dict[str, Any]) -> None:
        expected = self.checked.counts.end()
        found = line["end"] if isinstance(line["end"], dict) else {}
        for name, value in expected["end"].items():
            if found.get(name) != value or type(found[name]) is not type(value):
                what = "hash" if name == "sha256" else f"number of {name}"
                raise ValueError(f"the {what} does not fit the lines before: the file was changed")
        if found.keys() != expected["end"].keys():
            raise ValueError("the last line holds something unknown")
        for digest, id in self._absent.items():
            if digest not in self._pruned:
                raise ValueError(f"{id!r} needs blob {digest}, which is not before it")
        self.checked.ownership.check()
        self.ended = True


def load_document(fields: dict[str, Any], staged: StagedFile) -> Document:
    """The document of a line, long content put back. Raises `ValueError`."""
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


# The file, copied so that it can be read twice


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


def decode_line(data: bytes, limits: ImportLimits) -> dict[str, Any]:
    """The object on a line. Raises `ValueError` for anything else, or one nested too deep."""
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
