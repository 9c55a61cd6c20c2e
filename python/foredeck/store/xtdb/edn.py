"""Plain values as EDN text."""

from __future__ import annotations

import json
from typing import Any


def write(value: Any) -> str:
    """`value` as EDN: str, int, bool, None, and lists of those.

    Raises `TypeError` for anything else. Texts must be free of lone surrogates.
    """
    match value:
        case None:
            return "nil"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            # EDN's reader knows every escape that JSON's writer makes.
            return json.dumps(value, ensure_ascii=False)
        case list() | tuple():
            return f"[{' '.join(map(write, value))}]"
    raise TypeError(f"{type(value).__name__} is not written as EDN")
