"""The configuration keys, and their values from `FOREDECK_*` variables and `--set KEY=VALUE`."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from foredeck.config.model import Config
from foredeck.config.sections import Constant, OutsideFiles, UserOnly


class Key(NamedTuple):
    """One configuration key: its dotted name, field, and who may set it."""

    name: str
    field: FieldInfo
    user_only: bool
    """A project's file may not set it."""
    outside_files: bool
    """No file may set it."""
    constant: bool
    """It is no setting (`Constant`)."""

    @property
    def optional(self) -> bool:
        """Whether the key may be unset (null)."""
        return type(None) in get_args(self.field.annotation)

    @property
    def type_text(self) -> str:
        return _type_text(self.field.annotation)


@cache
def all_keys() -> dict[str, Key]:
    return {name: key for name, key in keys_and_constants().items() if not key.constant}


@cache
def keys_and_constants() -> dict[str, Key]:
    """The settings, and the constants that benches and tests can change."""
    return {key.name: key for key in _walk(Config, "", ())}


@cache
def sections() -> frozenset[str]:
    return frozenset(name.rpartition(".")[0] for name in keys_and_constants() if "." in name)


def nearest(name: str) -> str | None:
    """The key that a mistyped one most probably means, if any."""
    names = list(all_keys())
    # A key that is in another section comes before one that is only spelled alike.
    last = name.rpartition(".")[2]
    if same := [candidate for candidate in names if candidate.rpartition(".")[2] == last]:
        return same[0]
    matches = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return matches[0] if matches else None


def _walk(model: type[BaseModel], prefix: str, inherited: Sequence[Any]) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        kind, marks = field.annotation, [*inherited, *field.metadata]
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _walk(kind, f"{prefix}{name}.", marks)
        else:
            user_only, outside_files, constant = (
                any(isinstance(mark, marker) for mark in marks)
                for marker in (UserOnly, OutsideFiles, Constant)
            )
            yield Key(f"{prefix}{name}", field, user_only, outside_files, constant)


_NAMES = {int: "integer", float: "number", bool: "true | false", str: "text", Path: "path"}


def _type_text(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Literal:
        return " | ".join(f'"{value}"' for value in get_args(kind))
    if origin in (Union, UnionType):
        return " | ".join(
            "unset" if part is type(None) else _type_text(part) for part in get_args(kind)
        )
    if origin is tuple:
        element = get_args(kind)[0]
        if get_origin(element) is Literal:
            return f"list of {_type_text(element)}"
        return "list of texts" if element is str else "list of tables"
    if origin is dict:
        return "table of values"
    return _NAMES.get(kind, "table")


PREFIX = "FOREDECK_"

RESERVED = frozenset(
    {"FOREDECK_DEBUG", "FOREDECK_ENGINE", "FOREDECK_NODE", "FOREDECK_PYTHON", "FOREDECK_SESSION"}
)
"""Variables that are no configuration keys."""

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

CONSTANTS = "FOREDECK_TEST_CONSTANTS"
"""If set, variables and flags may change constants: in tests and benches."""

XTDB_URL = "FOREDECK_XTDB_URL"
"""Short for FOREDECK_XTDB__URL with FOREDECK_STORE=xtdb."""


def environment_name(key: str) -> str:
    """The variable that sets a key: `seed_window.turns` is FOREDECK_SEED_WINDOW__TURNS."""
    return PREFIX + key.upper().replace(".", "__")


def key_name(variable: str) -> str:
    if variable == XTDB_URL:
        return "xtdb.url"
    return variable.removeprefix(PREFIX).lower().replace("__", ".")


def environment_values(environ: Mapping[str, str]) -> dict[str, str]:
    """Configuration variables with their texts; empty values count as unset."""
    return {
        name: text
        for name, text in sorted(environ.items())
        if text and name.startswith(PREFIX)
        if name not in RESERVED and not name.startswith(RESERVED_PREFIXES)
    }


def split_flags(flags: Iterable[str]) -> dict[str, str]:
    """Keys with their texts, from `KEY=VALUE` arguments; raises ValueError."""
    values = {}
    for flag in flags:
        key, equals, text = flag.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{flag!r} is not KEY=VALUE")
        values[key.strip()] = text
    return values


def value_of(key: str, text: str) -> Any:
    """Text as the value of a key. Raises ValueError if a list or a table is not JSON."""
    key_info = keys_and_constants().get(key)
    if key_info is None:
        return text
    # TOML has no null, so only here a key can be unset again.
    if key_info.optional and text.strip().lower() in ("", "none", "null"):
        return None
    kind = key_info.field.annotation
    if get_origin(kind) in (tuple, dict):
        try:
            return json.loads(text)
        except ValueError as error:
            raise ValueError(f"must be JSON: {error}") from None
    return Path(text).expanduser().absolute() if kind is Path else text
