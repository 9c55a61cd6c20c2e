"""The configuration keys, found by walking the model; the nearest one to a mistyped name; and their
values where those are given as text: environment variables `FOREDECK_*`, flags `--set KEY=VALUE`.
"""

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
    """One configuration key: its dotted name, its field in the model, and who may set it."""

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
        """The type as users read it, for example `"normal" | "full"` or `integer`."""
        return _type_text(self.field.annotation)


@cache
def all_keys() -> dict[str, Key]:
    """Every setting by its dotted name, in the order of the model."""
    return {name: key for name, key in keys_and_constants().items() if not key.constant}


@cache
def keys_and_constants() -> dict[str, Key]:
    """The settings, and the constants that replays, benches and tests can change."""
    return {key.name: key for key in _walk(Config, "", ())}


@cache
def sections() -> frozenset[str]:
    """The names that are sections and so hold keys, never a value."""
    return frozenset(name.rpartition(".")[0] for name in keys_and_constants() if "." in name)


def nearest(name: str) -> str | None:
    """The key that a mistyped one most probably means, or None if none is like it."""
    names = list(all_keys())
    # A key that is in another section comes before one that is only spelled alike.
    last = name.rpartition(".")[2]
    if same := [known for known in names if known.rpartition(".")[2] == last]:
        return same[0]
    found = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return found[0] if found else None


def _walk(model: type[BaseModel], prefix: str, inherited: Sequence[Any]) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        kind, marks = field.annotation, [*inherited, *field.metadata]
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _walk(kind, f"{prefix}{name}.", marks)
        else:
            user_only, outside_files, constant = (
                any(isinstance(mark, wanted) for mark in marks)
                for wanted in (UserOnly, OutsideFiles, Constant)
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

CONSTANTS = "FOREDECK_TEST_CONSTANTS"
"""Where it is set, variables and flags may change constants, too: in tests and benches."""

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
        name: text
        for name, text in sorted(environ.items())
        if text and name.startswith(PREFIX)
        if name not in RESERVED and not name.startswith(RESERVED_PREFIXES)
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
    known = keys_and_constants().get(key)
    if known is None:
        return text
    # TOML has no null, so only here a key can be unset again.
    if known.optional and text.strip().lower() in ("", "none", "null"):
        return None
    kind = known.field.annotation
    if get_origin(kind) in (tuple, dict):
        try:
            return json.loads(text)
        except ValueError as error:
            raise ValueError(f"must be JSON: {error}") from None
    return Path(text).expanduser().absolute() if kind is Path else text
