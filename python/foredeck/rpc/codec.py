"""One JSON value to a line of bytes, and back."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from foredeck.rpc.errors import ParseError


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ASCII_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def decode(line: bytes) -> Any:
    """The JSON value of one line. Raises ParseError, with a text that says what is wrong."""
    try:
        return _DECODER.decode(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise ParseError("Parse error: the line is not UTF-8") from None
    except RecursionError:
        raise ParseError("Parse error: nested too deeply") from None
    except ValueError as error:
        raise ParseError(f"Parse error: {error}") from None


def encode(message: Any) -> bytes:
    """The line for a JSON value, newline included.

    Raises ValueError, TypeError or RecursionError if it has no JSON form.
    """
    try:
        return _ENCODER.encode(message).encode("utf-8") + b"\n"
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8; as an escape it survives
        return _ASCII_ENCODER.encode(message).encode("ascii") + b"\n"
