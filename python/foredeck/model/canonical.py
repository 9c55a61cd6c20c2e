"""Hashes, and the canonical JSON that they are taken of.

Canonical means: keys sorted, no white space, UTF-8, strings as given (no Unicode
normalisation). Two values that are equal as JSON have equal canonical bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
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


@lru_cache
def hash_of_modules(names: tuple[str, ...]) -> str:
    """A hash of the source of these modules, named by their paths within the package. What they
    have worked out is kept for other processes that run the same code.

    Raises `OSError` where one cannot be read.
    """
    root = Path(__file__).parents[1]
    return sha256_hex(b"\0".join((root / name).read_bytes() for name in names))


def kept_by(names: tuple[str, ...], fields: Mapping[str, Any]) -> bytes:
    """What these modules have worked out, as JSON for `read_kept`."""
    return json.dumps({"format": hash_of_modules(names), **fields}).encode()


def read_kept(names: tuple[str, ...], data: bytes) -> dict[str, Any] | None:
    """The fields that `kept_by` was given; None for what other code has written."""
    try:
        fields: dict[str, Any] = json.loads(data)
        return fields if fields.pop("format") == hash_of_modules(names) else None
    except (ValueError, TypeError, KeyError, AttributeError, OSError):
        return None
