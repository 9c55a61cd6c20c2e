"""From files, environment and flags to one `Config`, each value with its origin.

What is wrong in a project's file is left out, so that nobody loses foredeck by others'
repositories.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from foredeck.config.keys import (
    CONSTANTS,
    XTDB_URL,
    Key,
    all_keys,
    environment_name,
    environment_values,
    key_name,
    keys_and_constants,
    nearest,
    sections,
    split_flags,
    value_of,
)
from foredeck.config.model import Config
from foredeck.config.sections import MountSection
from foredeck.errors import ConfigError
from foredeck.regular_files import read_text

LayerKind = Literal["default", "user", "project", "environment", "flag"]


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    kind: LayerKind
    place: str

    def __str__(self) -> str:
        return "default" if self.kind == "default" else f"{self.kind}: {self.place}"


DEFAULT = ValueOrigin("default", "")

MAX_FILE_BYTES = 64 * 1024
"""No real configuration file comes near this size."""

MAX_DOTS = 30
"""In one line: Python's parser takes minutes over a key of thousands of parts."""

MOST_NAMED = 10
"""Unknown keys of one place that get a nearest known one."""


MOST_SHOWN = 1
"""Characters that a warning shows of what is left out."""


class Resolved(NamedTuple):
    """A configuration, the origin of each value by dotted key, and what was left out of the
    project's file."""

    config: Config
    origins: Mapping[str, ValueOrigin]
    left_out: tuple[str, ...] = ()

    @property
    def warning(self) -> str:
        """What of the project's file is left out; may be empty."""
        if not self.left_out:
            return ""
        listed = self.left_out[:MOST_SHOWN]
        more = len(self.left_out) - len(listed)
        rest = [f"and {more:,} more: `foredeck config --trusted` lists them"] if more else []
        return "\n".join(["foredeck leaves out of the project's configuration:", *listed, *rest])

    @property
    def values(self) -> dict[str, Any]:
        """Each value as in JSON, by dotted key."""
        plain = self.config.model_dump(mode="json")
        return {key: reduce(getitem, key.split("."), plain) for key in self.origins}

    @property
    def texts(self) -> dict[str, str]:
        """Each value as for a reader, by dotted key."""
        texts = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in self.values.items()
            if value is not None
        }
        return dict.fromkeys(self.origins, "unset") | texts


@dataclass(slots=True)
class _Layer:
    """Values of one kind of place with their origins, and what is wrong."""

    kind: LayerKind
    keys: Mapping[str, Key]
    """Keys that it may hold."""
    values: dict[str, tuple[Any, ValueOrigin]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, key: str, value: Any, place: str) -> None:
        problem = self._problem(key, value)
        if problem is None:
            self.values[key] = value, ValueOrigin(self.kind, place)
        else:
            self.problems.append(f"{place}: {problem}")

    def _problem(self, key: str, value: Any) -> str | None:
        # A key of a newer version, or a mistake: an error, since it would silently do nothing.
        key_info = self.keys.get(key)
        if key_info is None:
            # To look for a near name takes a while, and a file may have thousands of others.
            return (
                _unknown(key) if len(self.problems) < MOST_NAMED else f"unknown key {_shown(key)}"
            )
        if self.kind in ("user", "project") and key_info.outside_files:
            return (
                f"{key!r} cannot be set in a file, since the Pi extension has to know it before it "
                f"reads one; set {environment_name(key)} in the environment"
            )
        if self.kind == "project" and key_info.user_only:
            return (
                f"{key!r} cannot be set by a project, since a cloned repository is not trusted "
                f"with it; {_by_the_user()}"
            )
        if self.kind == "project" and key == "notes.folders" and not _are_within(value):
            return f"{key!r} names a folder outside the project; {_by_the_user()}"
        return None


def load_config(
    *,
    project: Path | None = None,
    trusted: bool = False,
    flags: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
    user_file: Path | None = None,
    constants: bool = False,
) -> Resolved:
    """Reads and merges all layers.

    `project`: its file is read only if `trusted`. `constants`: flags may change constants, too.
    Raises ConfigError that lists every problem of every layer but the project's.
    """
    environ = os.environ if environ is None else environ
    variables = environment_values(environ)
    every = keys_and_constants() if constants or environ.get(CONSTANTS) else all_keys()
    user, theirs = _Layer("user", all_keys()), _Layer("project", all_keys())
    _add_file(user, user_file or user_config_file())
    if project is not None and trusted:
        file = project_config_file(project)
        try:
            # Not `Path.resolve`, which raises for a link that leads into a loop.
            real = Path(os.path.realpath(file))
            if not real.is_relative_to(os.path.realpath(project)):
                raise ConfigError(f"{file}: it leads out of the project")
            _add_file(theirs, file)
        except ConfigError as error:
            theirs.problems.append(str(error))
    environment, flag = _Layer("environment", every), _Layer("flag", every)
    # Before the others: FOREDECK_STORE, where it is set as well, has the last word.
    if XTDB_URL in variables:
        environment.add("store", "xtdb", XTDB_URL)
    for variable, text in variables.items():
        _add_text(environment, key_name(variable), text, variable)
    for key, text in _flag_values(flags).items():
        _add_text(flag, key, text, f"--set {key}")
    if problems := user.problems + environment.problems + flag.problems:
        raise ConfigError("\n".join(problems))
    layers = [user, theirs, environment, flag]
    config, origins = _merged(layers)
    origin_by_key = {key: origins.get(key, DEFAULT) for key in all_keys()}
    return Resolved(config, origin_by_key, tuple(theirs.problems))


def _merged(layers: Sequence[_Layer]) -> tuple[Config, dict[str, ValueOrigin]]:
    while True:
        values = {key: value for layer in layers for key, value in layer.values.items()}
        origins = {key: origin for key, (_, origin) in values.items()}
        try:
            return _build({key: value for key, (value, _) in values.items()}), origins
        except ValidationError as error:
            explained = list(_explain(error, origins))
            # Others wrote the project's file: what is wrong in it is left out, and the rest is
            # tried again.
            theirs = next(layer for layer in layers if layer.kind == "project")
            wrong = {key: text for key, text in explained if key in theirs.values}
            if not wrong:
                raise ConfigError("\n".join(text for _, text in explained)) from None
            theirs.problems += dict.fromkeys(wrong.values())
            for key in wrong:
                del theirs.values[key]


def _add_file(layer: _Layer, path: Path) -> None:
    for key, value in _entries(path):
        layer.add(key, value, str(path))


def _add_text(layer: _Layer, key: str, text: str, place: str) -> None:
    try:
        layer.add(key, value_of(key, text), place)
    except ValueError as error:
        layer.problems.append(f"{place}: {key}: {error}")


def _flag_values(flags: Iterable[str]) -> dict[str, str]:
    try:
        return split_flags(flags)
    except ValueError as error:
        raise ConfigError(f"--set: {error}") from None


def _entries(path: Path) -> list[tuple[str, Any]]:
    try:
        return list(_flatten(tomllib.loads(_text_of(path)), ""))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    # Python's parser goes down a level for each bracket.
    except RecursionError:
        raise ConfigError(f"{path}: its values are nested too deeply") from None


def _text_of(path: Path) -> str:
    # A user names this for no file at all, and it is no regular file.
    if str(path) == os.devnull:
        return ""
    text = read_text(path, MAX_FILE_BYTES)
    if any(line.count(".") > MAX_DOTS for line in text.splitlines()):
        raise ConfigError(f"{path}: a line has more than {MAX_DOTS} dots: no key has so many parts")
    return text


def _flatten(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Dotted keys and values; a table in place of a value is kept, for the model to refuse."""
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and (
            key in sections() or (value and key not in keys_and_constants())
        ):
            yield from _flatten(value, f"{key}.")
        else:
            yield key, value


def _build(values: Mapping[str, Any]) -> Config:
    # With a table for each section its class need not prepare a validation of its own.
    nested: dict[str, Any] = {section: {} for section in sections()}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        (nested[section] if section else nested)[name] = value
    return Config.model_validate(nested)


def _explain(
    error: ValidationError, origins: Mapping[str, ValueOrigin]
) -> Iterator[tuple[str, str]]:
    """Explains each problem, with its key, or "" for several keys."""
    for problem in error.errors(include_url=False):
        key, rest = _key_of(problem["loc"])
        where = f"{origins[key].place}: " if key in origins else ""
        name = f"{key}{rest}: " if key else ""
        yield key, f"{where}{name}{_reason(problem, whole_value=not rest)}"


def _reason(problem: ErrorDetails, *, whole_value: bool) -> str:
    if problem["type"] == "value_error":
        return problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        return f"unknown; the keys here are {', '.join(MountSection.model_fields)}"
    text = problem["msg"].replace("Input should be", "must be").partition(", unable to")[0]
    # A table or list is not shown for a fault in one of its members.
    return f"{text}, not {_shown(problem['input'])}" if whole_value else text


def _key_of(location: tuple[int | str, ...]) -> tuple[str, str]:
    """A pydantic location as key and rest: `("sources.mounts", "[0].prefix")`."""
    parts = [str(part) for part in location]
    # The longest key that fits: what follows it is a place within its value.
    for length in range(len(parts), 0, -1):
        if (key := ".".join(parts[:length])) in keys_and_constants():
            rest = "".join(f"[{p}]" if p.isdigit() else f".{p}" for p in parts[length:])
            return key, rest
    return ".".join(parts), ""


def _shown(value: Any) -> str:
    text = repr(str(value) if isinstance(value, Path) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def _unknown(key: str) -> str:
    first = next((name for name in all_keys() if name.startswith(f"{key}.")), None)
    if first is not None:
        return f"{key!r} is a section; set a key in it, such as {first!r}"
    guess = nearest(key)
    hint = f"; did you mean {guess!r}?" if guess else "; `foredeck config` lists all keys"
    return f"unknown key {_shown(key)}{hint}"


def _by_the_user() -> str:
    return f"set it in {user_config_file()}, by environment or by flag"


def _are_within(folders: Any) -> bool:
    names = folders if isinstance(folders, list) else []
    paths = [
        flavour(name)
        # A project is shared across systems: a Windows path must not get past a check on Linux.
        for name in names
        for flavour in (PurePosixPath, PureWindowsPath)
        if isinstance(name, str)
    ]
    return not any(path.anchor or ".." in path.parts or str(path).startswith("~") for path in paths)


# Where configuration lives on this machine, and who may read the state folder


PROJECT_FILE = Path(".pi") / "foredeck.toml"
PRIVATE = 0o700


def user_config_file() -> Path:
    """The user's configuration file, for example ~/.config/foredeck/config.toml."""
    # Only where no variable names the folder.
    from platformdirs import user_config_path

    return user_config_path("foredeck", appauthor=False) / "config.toml"


def user_rules_file() -> Path:
    """The user's rules for all sessions; the file need not exist."""
    return user_config_file().with_name("rules.md")


def project_config_file(project: Path) -> Path:
    return project / PROJECT_FILE


def ensure_home(home: Path) -> Path:
    """Creates the state folder if need be, closed to other users.

    Raises ConfigError if it is no folder, belongs to another user, or is a folder that others rely
    on.
    """
    try:
        home.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    except FileExistsError:
        raise ConfigError(f"the state folder {home} is not a folder; set FOREDECK_HOME") from None
    except OSError as error:
        raise ConfigError(_cannot("create", home, error)) from error
    if sys.platform != "win32":
        _make_private(home)
    return home


def looser_than_private(home: Path) -> bool:
    """Whether other users can get into the folder; False on Windows."""
    return sys.platform != "win32" and bool(stat.S_IMODE(home.stat().st_mode) & 0o077)


def foreign_owner(home: Path) -> int | None:
    """The folder's owner, if another user; None on Windows."""
    if sys.platform == "win32":
        return None
    owner = home.stat().st_uid
    return None if owner == os.geteuid() else owner


def _make_private(home: Path) -> None:
    if not looser_than_private(home):
        return
    # Others rely on these: to close them would lock them out. A sticky bit marks folders like /tmp.
    if home == Path(home.anchor) or home == Path.home() or home.stat().st_mode & stat.S_ISVTX:
        raise ConfigError(
            f"the state folder {home} is shared with others; "
            "set FOREDECK_HOME to a folder of its own"
        )
    try:
        home.chmod(PRIVATE)
    except OSError as error:
        raise ConfigError(_cannot("close to other users", home, error)) from error


def _cannot(verb: str, home: Path, error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"cannot {verb} the state folder {home}: {reason}; set FOREDECK_HOME to another folder"
