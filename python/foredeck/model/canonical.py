"""Hashes, and the canonical JSON that they are taken of.

Canonical means: keys sorted, no white space, UTF-8, strings as given (no Unicode
normalisation). Two values that are equal as JSON have equal canonical bytes.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

JsonValue = Any
"""A value that `json` can write: dict with string keys, list, str, int, float, bool or None."""


# A cycle would end in a `RecursionError`: looking for one at each value takes a tenth of the time.
_CANONICAL = json.JSONEncoder(
    sort_keys=True,
    ensure_ascii=False,
    check_circular=False,
    separators=(",", ":"),
    allow_nan=False,
)
_ESCAPED = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value: JsonValue) -> bytes:
    """The canonical bytes of `value`.

    Raises `ValueError` for NaN and infinities, `TypeError` for what JSON cannot hold.
    """
    return encode_text(_CANONICAL.encode(value))


def encode_text(text: str) -> bytes:
    """UTF-8 bytes of `text`; a lone surrogate is kept (as WTF-8) instead of being replaced."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")


def decode_text(data: bytes) -> str:
    """The inverse of `encode_text`."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(errors="surrogatepass")


def json_text(value: JsonValue) -> str:
    """JSON text in canonical form that any UTF-8 column can hold: lone surrogates are escaped."""
    text = _CANONICAL.encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _ESCAPED.encode(value)
    return text


def sha256_hex(data: bytes) -> str:
    """SHA-256 of `data`, 64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def hash_value(value: JsonValue) -> str:
    """SHA-256 of the canonical JSON of `value`."""
    return sha256_hex(canonical_json(value))


def hash_text(text: str) -> str:
    """SHA-256 of a text's own bytes: the address of the blob that stores it."""
    return sha256_hex(encode_text(text))
