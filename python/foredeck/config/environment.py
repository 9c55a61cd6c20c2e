"""Values given as text: environment variables `FOREDECK_*` and flags `--set KEY=VALUE`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from foredeck.config.keys import all_keys

PREFIX = "FOREDECK_"

RESERVED = frozenset(
    {
        "FOREDECK_DEBUG",
        "FOREDECK_ENGINE",
        "FOREDECK_NODE",
        "FOREDECK_PYTHON",
        "FOREDECK_SESSION",
    }
)
"""Variables of the shim, the scripts and the command line: not configuration keys."""

RESERVED_PREFIXES = (
    "FOREDECK_DEMO",
    "FOREDECK_SCRATCH",
    "FOREDECK_SETUP",
    "FOREDECK_TEST",
    "FOREDECK_XTDB_JAVA",
    "FOREDECK_XTDB_KAFKA",
    "FOREDECK_XTDB_PG",
)
"""Families of such variables."""

XTDB_URL = "FOREDECK_XTDB_URL"
"""Names a server and selects it: short for FOREDECK_XTDB__URL with FOREDECK_STORE=xtdb."""


def environment_name(key: str) -> str:
    """The variable that sets a key: `seed_window.turns` is FOREDECK_SEED_WINDOW__TURNS."""
    return PREFIX + key.upper().replace(".", "__")


def key_name(variable: str) -> str:
    """The dotted key that a variable speaks of, whether or not there is such a key."""
    if variable == XTDB_URL:
        return "xtdb.url"
    return variable.removeprefix(PREFIX).lower().replace("__", ".")


def environment_values(environ: Mapping[str, str]) -> dict[str, str]:
    """`{variable: text}` of all that is meant as configuration; empty values count as unset."""
    return {
        name: text for name, text in sorted(environ.items()) if text and _is_configuration(name)
    }


def split_flags(flags: Iterable[str]) -> dict[str, str]:
    """`{key: text}` from `KEY=VALUE` arguments; raises ValueError naming one that is not."""
    values = {}
    for flag in flags:
        key, equals, text = flag.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{flag!r} is not KEY=VALUE")
        values[key.strip()] = text
    return values


def value_of(key: str, text: str) -> Any:
    """Text as the value of a key; what is wrong with its content is left to the model to say.

    Raises ValueError where a list or a table is not JSON.
    """
    known = all_keys().get(key)
    if known is None:
        return text
    if known.optional and text.strip().lower() in ("", "none", "null"):
        return None
    if known.holds_json:
        return _json(text)
    return _path(text) if known.holds_path else text


def _is_configuration(name: str) -> bool:
    return (
        name.startswith(PREFIX) and name not in RESERVED and not name.startswith(RESERVED_PREFIXES)
    )


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"must be JSON: {error}") from None


def _path(text: str) -> Path:
    return Path(text).expanduser().absolute()
