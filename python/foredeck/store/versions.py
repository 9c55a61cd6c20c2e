from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from foredeck.errors import Corrupt, StoreUnavailable
from foredeck.model.documents import Document, content_hash, damaged_summary, identity_hash
from foredeck.model.identity import decode_text, encode_text, hash_text, hash_value, sha256_hex
from foredeck.model.kinds import kind_of
from foredeck.store.protocol import Batch

SCHEMA = 2
"""The form of stores and bundles; any change increments it, and forms from 2 on stay readable."""


def check_schema(found: int) -> None:
    """Raises `StoreUnavailable` with advice for another form."""
    if found > SCHEMA:
        raise StoreUnavailable(
            f"a newer foredeck wrote it (schema {found}, this one knows {SCHEMA}): upgrade foredeck"
        )
    if found < SCHEMA:
        raise StoreUnavailable(
            f"a foredeck before 0.1.0 wrote it (schema {found}), which was never released: move it "
            "away to start afresh"
        )


INDEXED = (
    "assistant",
    "tip",
    "provider_call_id",
    "object",
    "source.path",
    "nickname",
    "parent_session",
    "host_file",
    "session_id",
    "chat_ref",
    "session",
)
"""Indexed fields, most selective first. Changes need another `SCHEMA`."""

INLINE_BYTES = 512
"""Longer content is a blob, shared with messages."""

PreparedFields = tuple[Mapping[str, Any], Mapping[str, Any]]
"""All fields of a sealed document, and those its version keeps."""

POSITION_BITS = 20
MAX_DOCUMENTS = 1 << POSITION_BITS
"""Most versions per transaction."""


def new_store_id() -> str:
    return secrets.token_hex(4)


def field_value(fields: Mapping[str, Any], name: str) -> Any:
    """A field by query name; `source.path` reaches into the binding."""
    if name.startswith("source."):
        return (fields.get("source") or {}).get(name.removeprefix("source."))
    return fields.get(name)


def matches(fields: Mapping[str, Any], name: str, value: Any) -> bool:
    """Whether a field equals `value` as JSON: `True` is not 1, missing is None."""
    stored_value = field_value(fields, name)
    return type(stored_value) is type(value) and bool(stored_value == value)


def without_nulls(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with values, for comparison."""
    # Types get new fields, and versions keep the form that they were stored or exported in. A field
    # without a value and a field that is not there give the same content hash.
    return {name: value for name, value in fields.items() if value is not None}


class LazyFields(Mapping[str, Any]):
    """A version's fields without `content`, decoded on demand. Raises `Corrupt` for damaged
    bytes."""

    __slots__ = ("_decode", "_fields", "_stored")

    def __init__(self, decode: Callable[..., dict[str, Any]], *stored: Any) -> None:
        """`decode` turns stored values into fields."""
        self._decode = decode
        self._stored: tuple[Any, ...] = stored
        self._fields: dict[str, Any] | None = None

    def _decoded(self) -> dict[str, Any]:
        if self._fields is None:
            self._fields = self._decode(*self._stored)
            self._fields.pop("content", None)
            self._stored = ()
        return self._fields

    def __getitem__(self, name: str) -> Any:
        return self._decoded()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded())

    def __len__(self) -> int:
        return len(self._decoded())

    def __repr__(self) -> str:
        return f"LazyFields({self._decoded()!r})"


D = TypeVar("D", bound=Document)


# Documents carry their own hashes, so neither the file nor what reads it has to be trusted.


def sealed_body(document: Document) -> Mapping[str, Any]:
    if not isinstance(document, kind_of(document.type)):
        raise ValueError(f"{document.type} {document.id!r} is no {kind_of(document.type).__name__}")
    # Hashing takes longer than to see that nothing has changed since that was done.
    return document.sealed_fields() or _checked_body(document)


def _checked_body(document: Document) -> Mapping[str, Any]:
    body = document.model_dump()
    content = body["content"]
    right = {
        "identity_hash": identity_hash(document.type, body["source"]),
        "content_hash": content_hash(body),
        "text_hash": None if content is None else hash_text(content),
        "metadata_view_hash": hash_value(document.metadata_view(body)),
    }
    for name, value in right.items():
        if body[name] != value:
            raise ValueError(
                f"{document.type} {document.id!r}: {name} does not fit the fields, which were "
                "changed after it was computed"
            )
    damaged = damaged_summary(body)
    if damaged is not None:
        raise ValueError(f"{document.type} {document.id!r}: {damaged} does not fit its hash")
    return body


def prepared(batch: Batch) -> tuple[list[PreparedFields], dict[str, bytes]]:
    """A commit's checked documents and blobs. Raises `ValueError` like `Store.commit`."""
    blobs = dict(batch.blobs)
    for digest, data in blobs.items():
        if sha256_hex(data) != digest:
            raise ValueError(f"blob {digest}: the bytes have another SHA-256")
    documents: dict[str, PreparedFields] = {}
    for document in batch.puts:
        if document.id in documents:
            raise ValueError(f"two documents with the id {document.id!r} in one commit")
        fields = stored = sealed_body(document)
        content = None if fields["content"] is None else encode_text(fields["content"])
        if content is None or len(content) >= INLINE_BYTES:
            stored = {name: value for name, value in fields.items() if name != "content"}
            if content is not None:
                blobs[fields["text_hash"]] = content
        documents[document.id] = fields, stored
    return list(documents.values()), blobs


def check_blob(digest: str, data: bytes) -> bytes:
    """Returns `data`. Raises `Corrupt` unless its SHA-256 is `digest`."""
    if sha256_hex(data) != digest:
        raise Corrupt(f"blob {digest}: the stored bytes are damaged (their SHA-256 differs)")
    return data


def restore(kind: type[D], fields: dict[str, Any], blob: Callable[[str], bytes]) -> D:
    """The document from stored fields.

    Raises `Corrupt` if hashes disagree, `ValueError` for another type than `kind`.
    """
    name = f"{fields['type']} {fields['id']!r}"
    expected = kind.model_fields["type"].default
    if isinstance(expected, str) and expected != fields["type"]:
        raise ValueError(f"{name} was asked for as {expected}")
    text_hash = fields.get("text_hash")
    if "content" not in fields:
        fields["content"] = None if text_hash is None else decode_text(blob(text_hash))
    content = fields["content"]
    if (None if content is None else hash_text(content)) != text_hash:
        raise Corrupt(f"{name}: the stored content is damaged (its hash differs)")
    if content_hash(fields) != fields.get("content_hash"):
        raise Corrupt(f"{name}: the stored fields are damaged (their hash differs)")
    try:
        # Not `model_construct`: validation builds nested models (`source`, `version_ref`), takes
        # 7 µs, and is one more check on bytes that came from a disk.
        document = kind.model_validate(fields)
    except ValidationError as error:
        raise Corrupt(f"{name}: the stored fields are not those of its type: {error}") from error
    damaged = damaged_summary(fields)
    if damaged is not None:
        raise Corrupt(f"{name}: its {damaged} is damaged (its hash differs)")
    # The base class does not know what the metadata view of a type shows.
    is_checked_type = isinstance(document, kind_of(fields["type"]))
    if (
        is_checked_type
        and hash_value(document.metadata_view(fields)) != document.metadata_view_hash
    ):
        raise Corrupt(f"{name}: the stored hash of its metadata view is damaged")
    return document
