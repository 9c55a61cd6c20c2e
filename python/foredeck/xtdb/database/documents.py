"""How versions, blobs, transactions and the clock are written as documents of XTDB.

- One document per object holds its newest version; XTDB keeps the older ones. All fields are
  in it as one JSON text, and beside it the few that are looked up or lead to other objects. Content
  of some length is a blob.
- One document per blob, in the same transaction.
- One document per transaction: its token and time, its place in the order in which transactions
  came in, and the versions that it brought. It makes a transaction idempotent, too.
- One document, the clock, that every transaction replaces, and matches unless the node moves it
  on by itself: this is what orders transactions, and what makes one of two fail that were planned
  on the same state.

Every name begins with a namespace, so that one server can hold several stores, and documents of
others beside them. In the namespace `foredeck`, people find an object's versions under the id
`foredeck/doc/<id>` and look for `[?e :foredeck/type "file"]`.

What a version refers to are attributes that Datalog can follow. Values of `file_refs` and
`toolcall_ids` are XTDB's ids of the objects. `references` and `names` hold the keys of the graph
(`notes/parsed.py`): an object refers to another where one of its references is among the other's
names. A query joins them in either direction, and through cycles by a rule.
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
from foredeck.model.canonical import encode_text, hash_value, json_text, sha256_hex
from foredeck.notes.entries import entry_of, has_text
from foredeck.notes.parsed import keys_of
from foredeck.store.protocol import Head, Origin, Token
from foredeck.store.versions import INDEXED, SCHEMA, LazyFields, check_schema, field_value
from foredeck.xtdb.database.client import Doc

_LONGEST = 400
_HASHED = "~"
_NAMESPACE = re.compile(r"[a-z][a-z0-9_-]{0,63}")


class XtdbNames:
    """Ids and attribute names of one namespace."""

    def __init__(self, namespace: str) -> None:
        """Raises `ConfigError` for a namespace that cannot be part of an EDN keyword."""
        if not _NAMESPACE.fullmatch(namespace):
            raise ConfigError(
                f"{namespace!r} cannot name a store in XTDB: use small letters, digits, - and _, "
                "a letter first, 64 at most"
            )
        self.namespace = namespace
        self.clock = f"{namespace}/clock"

    def document(self, id: str) -> str:
        """XTDB's id of the document with this id."""
        return f"{self.namespace}/doc/{plain(id)}"

    def id_of(self, eid: str) -> str | None:
        """The inverse of `document`; None where the id was hashed."""
        id = eid.removeprefix(f"{self.namespace}/doc/")
        return None if id.startswith(_HASHED) else id

    def late(self, id: str, token: str) -> str:
        """XTDB's id of one version that came in after newer ones."""
        return f"{self.namespace}/late/{plain(token)}/{plain(id)}"

    def blob(self, digest: str) -> str:
        """XTDB's id of the blob with this SHA-256."""
        return f"{self.namespace}/blob/{plain(digest)}"

    def transaction(self, token: str) -> str:
        """XTDB's id of the record of a transaction."""
        return f"{self.namespace}/tx/{plain(token)}"

    def attribute(self, name: str) -> str:
        """The key of an attribute in a document."""
        return f"{self.namespace}/{name.replace('.', '_')}"

    def keyword(self, name: str) -> str:
        """The same attribute in a query."""
        return f":{self.attribute(name)}"

    def attributes(self, fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Keys and values by which a version can be found, of the fields that it has."""
        for name in INDEXED:
            value = field_value(fields, name)
            if value is not None:
                yield self.attribute(name), lookup_value(value)


def plain(text: str) -> str:
    """`text` itself, or its hash where it is long or holds what XTDB's text cannot."""
    return text if _is_plain(text) else _HASHED + sha256_hex(encode_text(text))


def lookup_value(value: Any) -> Any:
    """What a field's value is looked up by: itself where XTDB can compare it, else a hash."""
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
"""Values of one attribute: of a note with more links the first count."""


def link_attributes(names: XtdbNames, fields: Mapping[str, Any]) -> Doc:
    """The attributes of a version; `fields` with its content. What has no links has none."""
    found: dict[str, list[str]] = {}
    for name in OBJECTS:
        ids = fields.get(name)
        if isinstance(ids, list):
            found[name] = _some(names.document(id) for id in ids if isinstance(id, str))
    found["references"], found["names"] = _keys(fields)
    return {names.attribute(name): values for name, values in found.items() if values}


def standing_links(names: XtdbNames, doc: Mapping[str, Any] | None) -> Doc:
    """The same of a version that is in XTDB already, whose content is not at hand."""
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
    """Each once, in their order, as many as are kept."""
    return list(dict.fromkeys(values))[:MOST]


_TEXT_BYTES = 1024
"""Blobs up to this size are kept readable, where they are text that XTDB can hold."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The state that the next transaction builds on."""

    store: str
    """First part of the tokens that are made here."""
    seq: int
    """How many transactions there are."""
    time_ms: int
    """The latest time that any of them has."""
    token: Token
    """The one that came in last."""
    revision: int
    """Counts changes, also those that add to an older transaction."""

    def to_doc(self, names: XtdbNames) -> Doc:
        """As XTDB holds it."""
        values = self.store, self.seq, self.time_ms, self.token, self.revision
        fields = dict(zip(_clock_keys(names), values, strict=True))
        return {"xt/id": names.clock, names.attribute("schema"): SCHEMA, **fields}

    @classmethod
    def from_doc(cls, names: XtdbNames, doc: Doc) -> Clock:
        """The inverse of `to_doc`. Raises `StoreUnavailable` for a store of another form."""
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
        """As XTDB holds it."""
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
    """The place of the document's first version among all versions."""
    irregular: bool
    """Whether a version up to this one came in with a transaction that was not later than all
    before it, so that XTDB's order need not be ours."""
    text: str

    @property
    def origin(self) -> Origin:
        """The transaction that it came with."""
        return Origin(self.token, self.time_ms)

    @property
    def fields(self) -> dict[str, Any]:
        """All fields; `content` among them only where it is short. Raises `Corrupt`."""
        return read_fields(self.text)

    def head(self, id: str | None) -> Head:
        """As `Store` returns it; without an `id` the fields are decoded to find it."""
        fields = LazyFields(read_fields, self.text)
        return Head(fields["id"] if id is None else id, self.type, self.token, self.time_ms, fields)

    def to_doc(
        self, names: XtdbNames, eid: str, fields: Mapping[str, Any], links: Doc | None = None
    ) -> Doc:
        """As XTDB holds it while it is the newest.

        `links`: the attributes of `link_attributes`, where `fields` are without their content.
        """
        doc = self._common(names, eid)
        doc[names.attribute("type")] = lookup_value(self.type)
        doc[names.attribute("identity")] = fields["identity_hash"]
        doc[names.attribute("born")] = self.born
        doc.update(link_attributes(names, fields) if links is None else links)
        doc.update(names.attributes(fields))
        doc[names.attribute("irregular")] = self.irregular
        return doc

    def to_late_doc(self, names: XtdbNames, eid: str, of: str) -> Doc:
        """As XTDB holds it where newer versions (of the document `of`) came in before it."""
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
    """The fields of a version. Raises `Corrupt` for what is no JSON object."""
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise Corrupt(f"stored fields are damaged ({error})") from error


def write_blob(names: XtdbNames, digest: str, data: bytes) -> Doc:
    """A blob as XTDB holds it: short text as it is, other bytes deflated where that helps."""
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
    """The bytes of a blob, not yet checked against their hash. Raises `Corrupt`."""
    encoding, text = doc[names.attribute("blob_encoding")], doc[names.attribute("blob_data")]
    size = doc[names.attribute("blob_size")]
    try:
        if encoding == "text":
            return encode_text(text)
        data = base64.b64decode(text, validate=True)
        return data if encoding == "base64" else zlib.decompressobj().decompress(data, size + 1)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise Corrupt(f"blob {digest}: the stored bytes are damaged ({error})") from error
