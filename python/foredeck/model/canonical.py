"""Hashes, and the canonical JSON behind them: sorted keys, no white space, UTF-8, strings
unnormalised."""

from __future__ import annotations

import hashlib
import json
from typing import Any

JsonValue = Any
"""A value that `json` can write."""


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
    """Raises `ValueError` for NaN and infinities, `TypeError` for what JSON cannot hold."""
    return encode_text(_CANONICAL.encode(value))


def encode_text(text: str) -> bytes:
    """UTF-8 of `text`; lone surrogates are kept (as WTF-8)."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")


def decode_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(errors="surrogatepass")


def json_text(value: JsonValue) -> str:
    """Canonical JSON as text; lone surrogates are escaped."""
    text = _CANONICAL.encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _ESCAPED.encode(value)
    return text


def sha256_hex(data: bytes) -> str:
    """64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def hash_value(value: JsonValue) -> str:
    """SHA-256 of the canonical JSON."""
    return sha256_hex(canonical_json(value))


def hash_text(text: str) -> str:
    """SHA-256 of a text's bytes."""
    return sha256_hex(encode_text(text))
