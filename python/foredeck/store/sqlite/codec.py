"""How the SQLite store writes documents and blobs as bytes, and finds documents by field.

A version's body is its JSON without what has columns of its own, deflated against a dictionary
of the field names and values that documents share: a typical body shrinks to a third, and
every field, also an empty one, can be listed without knowing the document's class. Small blobs
are mostly messages and have a dictionary of their own.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from foredeck.errors import Corrupt
from foredeck.model.canonical import decode_text, encode_text, json_text
from foredeck.model.documents import identity_hash
from foredeck.store.fields import INDEXED, field_value
from foredeck.store.sqlite.dictionaries import BODY_1, MESSAGE_1

INLINE_BYTES = 512
"""Content below this many bytes is kept in the version; other content is a blob of its own, and
shares it with the stored messages that hold the same text."""

_SMALL = 8_192
_SAMPLE = 16_384
_LARGE = 65_536
MAX_BLOB = 2**30
"""Bytes. Nothing larger can be put; a file from elsewhere may say that a blob unpacks to anything.
"""
MAX_BODY = 2**28
"""Of a document's fields without the long texts, which are blobs."""
_WORTH_IT = 0.9
_PLAIN, _DEFLATED, _BY_DICTIONARY = 0, 1, 2


def _primed(dictionary: bytes) -> Any:
    """A deflater to be copied for each piece: cheaper than to read the dictionary again.

    A small window and little memory, since setting them up is most of the work.
    """
    return zlib.compressobj(6, zlib.DEFLATED, -13, 6, 0, dictionary)


_BODY_DEFLATER, _MESSAGE_DEFLATER = _primed(BODY_1), _primed(MESSAGE_1)
_COLUMNS = frozenset(
    {"id", "type", "identity_hash", "content_hash", "text_hash", "metadata_view_hash"}
)

NOT_BY_TYPE = frozenset({"turn", "member", "call"})
"""Types that are only queried by field: an index of all their documents would only cost space."""


@dataclass(frozen=True, slots=True)
class EncodedVersion:
    """One version as the tables hold it. `content` is set where it goes into a blob."""

    id: str
    type: str
    identity_hash: str
    content_hash: bytes
    view_hash: bytes
    text_hash: bytes | None
    body: bytes
    keys: frozenset[bytes]
    content: bytes | None

    @property
    def columns(self) -> tuple[bytes, bytes, bytes | None, bytes]:
        """What the version's own row holds, as `decode_fields` takes it."""
        return self.content_hash, self.view_hash, self.text_hash, self.body


def id_column(id: str) -> str | bytes:
    """An id as stored: SQLite's text cannot hold a lone surrogate, its bytes can."""
    try:
        id.encode()
    except UnicodeEncodeError:
        return encode_text(id)
    return id


def id_text(stored: str | bytes) -> str:
    """The inverse of `id_column`."""
    return stored if isinstance(stored, str) else decode_text(stored)


def encode_version(fields: Mapping[str, Any]) -> EncodedVersion:
    """Split a sealed body into columns, JSON and content."""
    content = None if fields["content"] is None else encode_text(fields["content"])
    inline = content is not None and len(content) < INLINE_BYTES
    body = {k: v for k, v in fields.items() if k not in _COLUMNS and (k != "content" or inline)}
    return EncodedVersion(
        id=fields["id"],
        type=fields["type"],
        identity_hash=fields["identity_hash"],
        content_hash=bytes.fromhex(fields["content_hash"]),
        view_hash=bytes.fromhex(fields["metadata_view_hash"]),
        text_hash=bytes.fromhex(fields["text_hash"]) if fields["text_hash"] else None,
        body=_deflate_body(json_text(body).encode()),
        keys=frozenset(lookup_keys(fields)),
        content=None if inline else content,
    )


def decode_fields(
    id: str,
    type: str,
    content_hash: bytes,
    view_hash: bytes,
    text_hash: bytes | None,
    body: bytes,
) -> dict[str, Any]:
    """All fields; `content` among them only where it is stored in the body.

    Raises `Corrupt` where the bytes are not a body.
    """
    try:
        fields: dict[str, Any] = json.loads(body_text(id, type, body))
        fields["identity_hash"] = _identity(type, fields["source"])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise _damaged(id, type, error) from error
    fields["id"] = id
    fields["type"] = type
    fields["content_hash"] = content_hash.hex()
    fields["metadata_view_hash"] = view_hash.hex()
    fields["text_hash"] = None if text_hash is None else text_hash.hex()
    return fields


def body_text(id: str, type: str, body: bytes) -> str:
    """The JSON of a stored body. Raises `Corrupt` where the bytes are not one."""
    try:
        return _inflate_body(body).decode()
    except (zlib.error, ValueError, LookupError) as error:
        raise _damaged(id, type, error) from error


def _damaged(id: str, type: str, error: Exception) -> Corrupt:
    return Corrupt(f"{type} {id!r}: the stored fields are damaged ({error})")


@lru_cache(maxsize=64)
def _unsourced_identity(type: str) -> str:
    return identity_hash(type, None)


def _identity(type: str, source: Mapping[str, Any] | None) -> str:
    return _unsourced_identity(type) if source is None else identity_hash(type, source)


def _deflate_body(data: bytes) -> bytes:
    packed = _deflate(_BODY_DEFLATER, data)
    if len(packed) < len(data):
        return bytes([_BY_DICTIONARY]) + packed
    return bytes([_PLAIN]) + data


def _inflate_body(data: bytes) -> bytes:
    kind, rest = data[0], data[1:]
    if kind == _PLAIN:
        return rest
    if kind != _BY_DICTIONARY:
        raise ValueError(f"unknown encoding {kind}")
    return _inflate(zlib.decompressobj(-15, BODY_1), rest, MAX_BODY)


def _deflate(primed: Any, data: bytes) -> bytes:
    deflater = primed.copy()
    packed: bytes = deflater.compress(data) + deflater.flush()
    return packed


def encode_blob(data: bytes) -> tuple[int, bytes]:
    """`(encoding, bytes)`: deflated where that saves at least a tenth.

    A large blob that does not shrink at its start (an image) is not tried as a whole.
    """
    if len(data) > _LARGE and not _is_smaller(zlib.compress(data[:_SAMPLE], 1), _SAMPLE):
        return _PLAIN, data
    if len(data) <= _SMALL:
        encoding, packed = _BY_DICTIONARY, _deflate(_MESSAGE_DEFLATER, data)
    else:
        encoding, packed = _DEFLATED, zlib.compress(data, 1 if len(data) > _LARGE else 4)
    return (encoding, packed) if _is_smaller(packed, len(data)) else (_PLAIN, data)


def _is_smaller(packed: bytes, size: int) -> bool:
    return len(packed) <= size * _WORTH_IT


def decode_blob(digest: str, size: int, encoding: int, data: bytes) -> bytes:
    """The bytes that were put, not yet checked against their hash. Raises `Corrupt`."""
    try:
        if size > MAX_BLOB:
            raise ValueError(f"{size} bytes are said to be in it")
        if encoding == _BY_DICTIONARY:
            data = _inflate(zlib.decompressobj(-15, MESSAGE_1), data, size + 1)
        elif encoding == _DEFLATED:
            data = _inflate(zlib.decompressobj(), data, size + 1)
        elif encoding != _PLAIN:
            raise ValueError(f"unknown encoding {encoding}")
        if len(data) != size:
            raise ValueError(f"{len(data)} bytes instead of {size}")
    except (zlib.error, ValueError) as error:
        raise Corrupt(f"blob {digest}: the stored bytes are damaged ({error})") from error
    return data


def _inflate(unpacker: Any, data: bytes, limit: int) -> bytes:
    """Inflate a whole stream, to at most `limit` bytes."""
    found: bytes = unpacker.decompress(data, limit)
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("the deflated bytes do not end where they should")
    return found


_TOP_FIELDS = frozenset(name for name in INDEXED if "." not in name)
_INNER_FIELDS = tuple(name for name in INDEXED if "." in name)


def lookup_keys(fields: Mapping[str, Any]) -> Iterator[bytes]:
    """The index entries of a version: one for each indexed field it has, and for most types
    one for the type."""
    type_ = fields["type"]
    if type_ not in NOT_BY_TYPE:
        yield type_key(type_)
    # Most documents have two or three of these fields.
    for name in (*(_TOP_FIELDS & fields.keys()), *_INNER_FIELDS):
        value = field_value(fields, name)
        if isinstance(value, str | int):
            yield field_key(type_, name, value)


@lru_cache(maxsize=64)
def type_key(type: str) -> bytes:
    """The index entry that all documents of a type have."""
    return _key(f"{len(type)}:{type}")


# Most documents of a commit are of one session. `typed`: 1 and True have keys of their own.
@lru_cache(maxsize=256, typed=True)
def field_key(type: str, name: str, value: str | int | bool) -> bytes:
    """The index entry of the documents of a type whose field `name` is `value`."""
    kind = "s" if isinstance(value, str) else "b" if isinstance(value, bool) else "i"
    return _key(f"{len(type)}:{type}:{name}:{kind}{value}")


def _key(text: str) -> bytes:
    return hashlib.blake2b(encode_text(text), digest_size=16).digest()
