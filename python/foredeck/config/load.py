"""From files, environment and flags to one `Config`, every value with where it came from.

Precedence, lowest first: defaults, the user's file, the project's file (only where the project is
trusted), environment, flags. Each layer is checked by itself before they are merged, so that an
error names the file or variable that holds it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, Literal

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from foredeck.config.environment import (
    XTDB_URL,
    environment_name,
    environment_values,
    key_name,
    split_flags,
    value_of,
)
from foredeck.config.folders import project_config_file, user_config_file
from foredeck.config.keys import all_keys, nearest, sections
from foredeck.config.model import Config
from foredeck.config.outside import MountSection
from foredeck.errors import ConfigError

LayerKind = Literal["default", "user", "project", "environment", "flag"]


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """Where a value came from: the layer, and the file, variable or flag within it."""

    kind: LayerKind
    place: str

    def __str__(self) -> str:
        return "default" if self.kind == "default" else f"{self.kind}: {self.place}"


DEFAULT = ValueOrigin("default", "")

MAX_FILE_BYTES = 256 * 1024
"""No real configuration file comes near this size."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A configuration and the origin of each of its values, by dotted key."""

    config: Config
    origins: Mapping[str, ValueOrigin]

    def value(self, key: str) -> Any:
        """The value of a dotted key; raises AttributeError if there is no such key."""
        value: Any = self.config
        for part in key.split("."):
            value = getattr(value, part)
        return value


@dataclass(slots=True)
class _Layers:
    """What has been merged so far: values and origins by dotted key, and every problem found."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, ValueOrigin] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, key: str, value: Any, origin: ValueOrigin) -> None:
        known = all_keys().get(key)
        if known is None:
            self.problems.append(f"{origin.place}: {_unknown(key)}")
        elif origin.kind in ("user", "project") and known.outside_files:
            self.problems.append(f"{origin.place}: {_not_in_a_file(key)}")
        elif origin.kind == "project" and known.user_only:
            self.problems.append(f"{origin.place}: {_not_by_project(key)}")
        else:
            self.values[key] = value
            self.origins[key] = origin


def load_config(
    *,
    project: Path | None = None,
    trusted: bool = False,
    flags: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
    user_file: Path | None = None,
) -> Resolved:
    """Read and merge all layers.

    `project` is the project's folder; its file is read only if `trusted`. `flags` are KEY=VALUE.
    `environ` and `user_file` default to the process's own. Raises ConfigError that lists every
    problem of every layer, one a line.
    """
    layers = _Layers()
    _add_file(layers, user_file or user_config_file(), "user")
    if project is not None and trusted:
        _add_file(layers, project_config_file(project), "project")
    variables = environment_values(os.environ if environ is None else environ)
    if XTDB_URL in variables:
        layers.add("store", "xtdb", ValueOrigin("environment", XTDB_URL))
    for variable, text in variables.items():
        _add_text(layers, key_name(variable), text, ValueOrigin("environment", variable))
    for key, text in _flag_values(flags).items():
        _add_text(layers, key, text, ValueOrigin("flag", f"--set {key}"))
    if layers.problems:
        raise ConfigError("\n".join(layers.problems))
    return Resolved(_build(layers), {key: layers.origins.get(key, DEFAULT) for key in all_keys()})


def _add_file(layers: _Layers, path: Path, kind: LayerKind) -> None:
    origin = ValueOrigin(kind, str(path))
    for key, value in _flatten(_read_toml(path), ""):
        layers.add(key, value, origin)


def _add_text(layers: _Layers, key: str, text: str, origin: ValueOrigin) -> None:
    try:
        layers.add(key, value_of(key, text), origin)
    except ValueError as error:
        layers.problems.append(f"{origin.place}: {key}: {error}")


def _flag_values(flags: Iterable[str]) -> dict[str, str]:
    try:
        return split_flags(flags)
    except ValueError as error:
        raise ConfigError(f"--set: {error}") from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text_of(path))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    except RecursionError:
        raise ConfigError(f"{path}: its values are nested too deeply") from None


def _text_of(path: Path) -> str:
    """A configuration file's text. A project's may be anything, such as a link to a device."""
    if str(path) == os.devnull:
        return ""
    mode = path.stat().st_mode
    if not S_ISREG(mode) and not S_ISDIR(mode):
        raise ConfigError(f"{path}: not a regular file")
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"{path}: larger than {MAX_FILE_BYTES:,} bytes")
    return data.decode("utf-8")


def _flatten(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Dotted keys and values. A table in place of a value is kept, for the model to refuse."""
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and (key in sections() or (value and key not in all_keys())):
            yield from _flatten(value, f"{key}.")
        else:
            yield key, value


def _build(layers: _Layers) -> Config:
    nested: dict[str, Any] = {}
    for key, value in layers.values.items():
        section, _, name = key.rpartition(".")
        (nested.setdefault(section, {}) if section else nested)[name] = value
    try:
        return Config.model_validate(nested)
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(error, layers.origins))) from None


def _explain(error: ValidationError, origins: Mapping[str, ValueOrigin]) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        key, rest = _key_of(problem["loc"])
        where = f"{origins[key].place}: " if key in origins else ""
        name = f"{key}{rest}: " if key else ""
        yield f"{where}{name}{_reason(problem, whole_value=not rest)}"


def _reason(problem: ErrorDetails, *, whole_value: bool) -> str:
    """What pydantic found, as a user would say it; with the value if it is the key's own."""
    if problem["type"] == "value_error":
        return problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        return f"unknown; the keys here are {', '.join(MountSection.model_fields)}"
    text = problem["msg"].replace("Input should be", "must be").partition(", unable to")[0]
    return f"{text}, not {_shown(problem['input'])}" if whole_value else text


def _key_of(location: tuple[int | str, ...]) -> tuple[str, str]:
    """A pydantic location as key and rest, for example `("sources.mounts", "[0].prefix")`."""
    parts = [str(part) for part in location]
    for length in range(len(parts), 0, -1):
        if (key := ".".join(parts[:length])) in all_keys():
            rest = "".join(f"[{p}]" if p.isdigit() else f".{p}" for p in parts[length:])
            return key, rest
    return ".".join(parts), ""


def _shown(value: Any) -> str:
    text = repr(str(value) if isinstance(value, Path) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def _unknown(key: str) -> str:
    if key in sections():
        return f"{key!r} is a section; set a key in it, such as {_first_of(key)!r}"
    guess = nearest(key)
    hint = f"; did you mean {guess!r}?" if guess else "; `foredeck config` lists all keys"
    return f"unknown key {key!r}{hint}"


def _first_of(section: str) -> str:
    return next(key for key in all_keys() if key.startswith(f"{section}."))


def _not_in_a_file(key: str) -> str:
    return (
        f"{key!r} cannot be set in a file, since the Pi extension has to know it before it reads "
        f"one; set {environment_name(key)} in the environment"
    )


def _not_by_project(key: str) -> str:
    return (
        f"{key!r} cannot be set by a project, since a cloned repository is not trusted with it; "
        f"set it in {user_config_file()}, by environment or by flag"
    )
