"""How versions, blobs, transactions and the clock are written as documents of XTDB.

- One document per object holds its newest version; XTDB keeps the older ones. All fields are
  in it as one JSON text (XTDB would index every element of every list), and beside it the few
  that are looked up or lead to other objects. Content of some length is a blob.
- One document per blob, in the same transaction.
- One document per transaction: its token and time, its place in the order in which transactions
  came in, and the versions that it brought. It makes a transaction idempotent, too.
- One document, the clock, that every transaction replaces, and matches unless the node moves it
  on by itself: this is what orders transactions, and what makes one of two fail that were planned
  on the same state.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foredeck.errors import Corrupt
from foredeck.model.canonical import encode_text, json_text
from foredeck.store.lazy_fields import LazyFields
from foredeck.store.protocol import Head, Origin, Token
from foredeck.xtdb.database.client import Doc
from foredeck.xtdb.database.links import link_attributes
from foredeck.xtdb.database.names import XtdbNames, lookup_value

INLINE_BYTES = 512
"""Content below this many bytes is kept in the version, other content is a blob."""
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
        values = {
            "clock_store": self.store,
            "clock_seq": self.seq,
            "clock_time": self.time_ms,
            "clock_token": self.token,
            "clock_revision": self.revision,
        }
        return {"xt/id": names.clock, **{names.attribute(k): v for k, v in values.items()}}

    @classmethod
    def from_doc(cls, names: XtdbNames, doc: Doc) -> Clock:
        """The inverse of `to_doc`."""
        store, seq, time_ms, token, revision = (
            doc[names.attribute(f"clock_{name}")]
            for name in ("store", "seq", "time", "token", "revision")
        )
        return cls(store, seq, time_ms, token, revision)


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
        values = {
            "tx_token": lookup_value(self.origin.token),
            "tx_time": self.origin.time_ms,
            "tx_seq": self.seq,
            "tx_nonce": self.nonce,
            "tx_imported": self.imported,
            "tx_changes": json_text([self.origin.token, *map(list, self.changes)]),
        }
        eid = names.transaction(self.origin.token)
        return {"xt/id": eid, **{names.attribute(k): v for k, v in values.items()}}

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

        `links`: the attributes of `links.py`, where `fields` are without their content.
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


def write_fields(body: Mapping[str, Any]) -> tuple[str, bytes | None]:
    """A sealed body as JSON, and its content where that goes into a blob."""
    content = None if body["content"] is None else encode_text(body["content"])
    if content is not None and len(content) < INLINE_BYTES:
        return json_text(body), None
    return json_text({k: v for k, v in body.items() if k != "content"}), content


def read_fields(text: str) -> dict[str, Any]:
    """The inverse of `write_fields`. Raises `Corrupt` for what is no JSON object."""
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
