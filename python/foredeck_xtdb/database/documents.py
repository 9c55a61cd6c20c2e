"""How versions, blobs, transactions and the clock are written as documents of XTDB.

One document per object holds its newest version, with all fields as one JSON text and those that
are looked up beside it; XTDB keeps the older ones. There is one per blob, and one per transaction,
which makes it idempotent. One, the clock, is replaced and matched by every transaction: this orders
transactions, and fails one of two that were planned on the same state.

Every name begins with a namespace, so that one server can hold several stores. Values of
`file_refs` and `toolcall_ids` are XTDB's ids; `references` and `names` hold the keys of the graph
(`notes/parsed.py`), which a query joins.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from foredeck.errors import ConfigError, Corrupt
from foredeck.model.identity import encode_text, hash_value, json_text, sha256_hex
from foredeck.model.records import nickname_id
from foredeck.notes.entries import entry_of, has_text
from foredeck.notes.parsed import keys_of
from foredeck.store.protocol import Head, Origin, Token
from foredeck.store.versions import INDEXED, SCHEMA, LazyFields, check_schema, field_value
from foredeck_xtdb.database.client import Doc

ASKED_FOR = ("tool", "status", "state", "file_type", "harness")
"""Fields for people's queries, beside those that foredeck looks up."""
_LONGEST = 400
_HASHED = "~"
_NAMESPACE = re.compile(r"[a-z][a-z0-9_-]{0,63}")


class XtdbNames:
    """Ids and attribute names of one namespace."""

    def __init__(self, namespace: str) -> None:
        """Raises `ConfigError` for a namespace that is no part of an EDN keyword."""
        if not _NAMESPACE.fullmatch(namespace):
            raise ConfigError(
                f"{namespace!r} cannot name a store in XTDB: use small letters, digits, - and _, "
                "a letter first, 64 at most"
            )
        self.namespace = namespace
        self.clock = f"{namespace}/clock"

    def document(self, id: str) -> str:
        return f"{self.namespace}/doc/{plain(id)}"

    def id_of(self, eid: str) -> str | None:
        """The document of one of XTDB's ids, unless it was hashed."""
        id = eid.removeprefix(f"{self.namespace}/doc/")
        return None if id.startswith(_HASHED) else id

    def late(self, id: str, token: str) -> str:
        return f"{self.namespace}/late/{plain(token)}/{plain(id)}"

    def blob(self, digest: str) -> str:
        return f"{self.namespace}/blob/{plain(digest)}"

    def transaction(self, token: str) -> str:
        return f"{self.namespace}/tx/{plain(token)}"

    def attribute(self, name: str) -> str:
        return f"{self.namespace}/{name.replace('.', '_')}"

    def keyword(self, name: str) -> str:
        """The same attribute in a query."""
        return f":{self.attribute(name)}"

    def attributes(self, fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Attributes by which a version can be found."""
        values = {name: field_value(fields, name) for name in (*INDEXED, *ASKED_FOR)}
        if fields.get("type") == "nickname" and values["object"] is not None:
            values["nickname"] = str(fields["id"]).removeprefix(nickname_id(""))
        for name, value in values.items():
            if value is not None:
                yield self.attribute(name), lookup_value(value)


def plain(text: str) -> str:
    """The text, or its hash if it is long or XTDB cannot hold it."""
    return text if _is_plain(text) else _HASHED + sha256_hex(encode_text(text))


def lookup_value(value: Any) -> Any:
    """A value that XTDB can compare, else its hash."""
    if isinstance(value, bool) or (isinstance(value, int) and -(2**63) <= value < 2**63):
        return value
    if isinstance(value, str):
        return plain(value)
    return _HASHED + hash_value(value)


def _is_plain(text: str) -> bool:
    if len(text) > _LONGEST or text.startswith(_HASHED):
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


log = logging.getLogger(__name__)

OBJECTS = ("file_refs", "toolcall_ids")
"""Fields that list ids of objects."""
KEYS = ("references", "names")
MOST = 1000
"""Most values of one attribute."""


def link_attributes(names: XtdbNames, fields: Mapping[str, Any]) -> Doc:
    """The links of a version; `fields` with content."""
    found: dict[str, list[str]] = {}
    for name in OBJECTS:
        ids = fields.get(name)
        if isinstance(ids, list):
            found[name] = _some(names.document(id) for id in ids if isinstance(id, str))
    found["references"], found["names"] = _keys(fields)
    return {names.attribute(name): values for name, values in found.items() if values}


def standing_links(names: XtdbNames, doc: Mapping[str, Any] | None) -> Doc:
    """The links of a version in XTDB, whose content is not at hand."""
    attributes = map(names.attribute, (*OBJECTS, *KEYS))
    return {key: doc[key] for key in attributes if doc is not None and key in doc}


def _keys(fields: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    try:
        text = fields.get("content") if has_text(fields["type"], fields) else None
        entry = entry_of(fields["id"], fields["type"], fields, text)
    except (AttributeError, KeyError, TypeError, ValueError):
        # Another version of foredeck wrote it. A transaction must be stored all the same.
        log.warning("no links are kept of %s: its fields are not as expected", fields.get("id"))
        return [], []
    if entry is None:
        return [], []
    keys = (keys_of(reference, entry.filesystem, entry.path) for reference in entry.references)
    return (
        _some(lookup_value(key) for several in keys for key in several),
        _some(lookup_value(name.key) for name in entry.names),
    )


def _some(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))[:MOST]


_TEXT_BYTES = 1024
"""Larger blobs are not kept readable."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The state that the next transaction builds on."""

    store: str
    """First part of the tokens that are made here."""
    seq: int
    """How many transactions there are."""
    time_ms: int
    token: Token
    """The one that came in last."""
    revision: int
    """Counts changes, also to older transactions."""

    def to_doc(self, names: XtdbNames) -> Doc:
        values = self.store, self.seq, self.time_ms, self.token, self.revision
        fields = dict(zip(_clock_keys(names), values, strict=True))
        return {"xt/id": names.clock, names.attribute("schema"): SCHEMA, **fields}

    @classmethod
    def from_doc(cls, names: XtdbNames, doc: Doc) -> Clock:
        """The inverse of `to_doc`. Raises `StoreUnavailable` for another form."""
        check_schema(doc.get(names.attribute("schema"), 0))
        return cls(*(doc[key] for key in _clock_keys(names)))


def _clock_keys(names: XtdbNames) -> list[str]:
    fields = ("store", "seq", "time", "token", "revision")
    return [names.attribute(f"clock_{name}") for name in fields]


@dataclass(frozen=True, slots=True)
class Transaction:
    """The record of one transaction."""

    origin: Origin
    seq: int
    nonce: str
    """Names the attempt that wrote it."""
    imported: bool
    changes: tuple[tuple[str, str], ...]
    """`(id, type)` of each version that it brought, in a fixed order."""

    def to_doc(self, names: XtdbNames) -> Doc:
        token, changes = self.origin.token, map(list, self.changes)
        values = self.origin.time_ms, self.seq, self.nonce, self.imported
        fields = zip(_TX_FIELDS, (*values, json_text([token, *changes])), strict=True)
        found = {names.attribute("tx_token"): lookup_value(token)}
        found |= {names.attribute(f"tx_{name}"): value for name, value in fields}
        return {"xt/id": names.transaction(token), **found}

    @classmethod
    def from_doc(cls, names: XtdbNames, doc: Doc) -> Transaction:
        """The inverse of `to_doc`."""
        value = {name: doc[names.attribute(f"tx_{name}")] for name in _TX_FIELDS}
        token, *changes = json.loads(value["changes"])
        origin = Origin(Token(token), value["time"])
        pairs = tuple((id, type) for id, type in changes)
        return cls(origin, value["seq"], value["nonce"], value["imported"], pairs)


_TX_FIELDS = ("time", "seq", "nonce", "imported", "changes")


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """One version of a document, its JSON not yet read."""

    token: Token
    time_ms: int
    type: str
    born: int
    """Place of the document's first version among all versions."""
    irregular: bool
    """Whether versions came in out of order, so that XTDB's order may not be ours."""
    text: str

    @property
    def origin(self) -> Origin:
        """The transaction that it came with."""
        return Origin(self.token, self.time_ms)

    @property
    def fields(self) -> dict[str, Any]:
        """All fields; `content` only if short. Raises `Corrupt`."""
        return read_fields(self.text)

    def head(self, id: str | None) -> Head:
        """The head, as `Store` returns it."""
        fields = LazyFields(read_fields, self.text)
        return Head(fields["id"] if id is None else id, self.type, self.token, self.time_ms, fields)

    def to_doc(
        self, names: XtdbNames, eid: str, fields: Mapping[str, Any], links: Doc | None = None
    ) -> Doc:
        """The document in XTDB while it is the newest."""
        doc = self._common(names, eid)
        doc[names.attribute("type")] = lookup_value(self.type)
        doc[names.attribute("identity")] = fields["identity_hash"]
        doc[names.attribute("born")] = self.born
        doc.update(link_attributes(names, fields) if links is None else links)
        doc.update(names.attributes(fields))
        doc[names.attribute("irregular")] = self.irregular
        return doc

    def to_late_doc(self, names: XtdbNames, eid: str, of: str) -> Doc:
        """The document in XTDB for a version that came after newer ones."""
        return {**self._common(names, eid), names.attribute("late_of"): of}

    def _common(self, names: XtdbNames, eid: str) -> Doc:
        return {
            "xt/id": eid,
            names.attribute("token"): self.token,
            names.attribute("time"): self.time_ms,
            names.attribute("kind"): self.type,
            names.attribute("fields"): self.text,
        }

    @classmethod
    def from_doc(cls, names: XtdbNames, doc: Doc) -> StoredVersion:
        """The inverse of `to_doc` and `to_late_doc`."""
        return cls(
            Token(doc[names.attribute("token")]),
            doc[names.attribute("time")],
            doc[names.attribute("kind")],
            doc.get(names.attribute("born"), -1),
            doc.get(names.attribute("irregular"), True),
            doc[names.attribute("fields")],
        )


def read_fields(text: str) -> dict[str, Any]:
    """The fields of a version. Raises `Corrupt`."""
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise Corrupt(f"stored fields are damaged ({error})") from error


def write_blob(names: XtdbNames, digest: str, data: bytes) -> Doc:
    """A blob in XTDB: short text as it is, else deflated if that helps."""
    encoding, text = _blob_text(data)
    return {
        "xt/id": names.blob(digest),
        names.attribute("blob_size"): len(data),
        names.attribute("blob_encoding"): encoding,
        names.attribute("blob_data"): text,
    }


def _blob_text(data: bytes) -> tuple[str, str]:
    if len(data) <= _TEXT_BYTES:
        try:
            return "text", data.decode()
        except UnicodeDecodeError:
            return "base64", base64.b64encode(data).decode()
    packed = zlib.compress(data, 1)
    if len(packed) <= len(data) * 0.9:
        return "deflate", base64.b64encode(packed).decode()
    return "base64", base64.b64encode(data).decode()


def read_blob(names: XtdbNames, digest: str, doc: Doc) -> bytes:
    """The bytes of a blob, unchecked. Raises `Corrupt`."""
    encoding, text = doc[names.attribute("blob_encoding")], doc[names.attribute("blob_data")]
    size = doc[names.attribute("blob_size")]
    try:
        if encoding == "text":
            return encode_text(text)
        data = base64.b64decode(text, validate=True)
        return data if encoding == "base64" else zlib.decompressobj().decompress(data, size + 1)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise Corrupt(f"blob {digest}: the stored bytes are damaged ({error})") from error
