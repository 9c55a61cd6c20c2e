"""Configuration, state folder and store: can they be used, and by this user alone."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from foredeck.cli.common import resolve_config
from foredeck.config import Config, foreign_owner, looser_than_private
from foredeck.errors import ConfigError, ForedeckError
from foredeck.finding import Finding, note, ok, problem
from foredeck.memory.user import KEY_FILE, load_user
from foredeck.store.location import is_network_filesystem
from foredeck.store.registry import store_kind
from foredeck.store.sqlite.checking import ELSEWHERE

FREE_BYTES_MIN = 256 * 1024 * 1024


def check_config(args: Namespace) -> tuple[Config, Finding]:
    """The configuration as this command line sees it, or the defaults if it cannot be used."""
    try:
        resolved = resolve_config(args)
    except ConfigError as error:
        advice = "Correct it; docs/configuration.md explains the keys. Checked with defaults."
        return Config(), problem("config", str(error), advice)
    if resolved.warning:
        advice = "Tell whoever keeps the project, or set it in your own configuration."
        return resolved.config, note("config", resolved.warning, advice)
    if resolved.retired_notice:
        return resolved.config, note("config", resolved.retired_notice, "Remove them.")
    return resolved.config, ok("config", "every layer can be read")


def check_state(config: Config) -> Iterator[Finding]:
    """The state folder and the store in it. Changes nothing but a file that it removes again."""
    home = config.home
    if not home.exists():
        yield _home_to_be(home)
    elif not home.is_dir():
        advice = ELSEWHERE
        yield problem("home", f"{home} is not a folder", advice)
        return
    else:
        yield _permissions(home)
        yield _writable(home)
    yield _space(home)
    yield _file_system(home)
    if home.is_dir():
        yield from _user_key(home)
    yield from store_kind(config.store).findings(config)


def _user_key(home: Path) -> Iterator[Finding]:
    """The key by which the user's word is told; it is made when the first session begins."""

    if not (home / KEY_FILE).exists():
        return
    try:
        load_user(home)
    except (OSError, ForedeckError) as error:
        advice = "Bring it back from a backup. Nothing that you said is lost, only that you did."
        yield problem("user key", str(error), advice)
    else:
        yield ok("user key", f"{home / KEY_FILE}: keep it with your backups")


def _home_to_be(home: Path) -> Finding:
    parent = _existing(home)
    if not os.access(parent, os.W_OK | os.X_OK):
        advice = f"Make {parent} writable, or set FOREDECK_HOME to a folder that you can write."
        return problem("home", f"{home} is not there, and {parent} is not writable", advice)
    return ok("home", f"{home} (made at first use)")


def _permissions(home: Path) -> Finding:
    if (owner := foreign_owner(home)) is not None:
        return problem(
            "permissions",
            f"{home} belongs to user {owner}, who can read and change what is in it",
            "Set FOREDECK_HOME to a folder of your own.",
        )
    if looser_than_private(home):
        mode = stat.S_IMODE(home.stat().st_mode)
        return problem(
            "permissions",
            f"other users can get into {home} (mode {mode:04o})",
            f"Run: chmod 700 {home}",
        )
    return ok("permissions", f"{home} is yours alone")


def _writable(home: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=home) as file:
            file.write(b"foredeck doctor")
            file.flush()
    except OSError as error:
        advice = "Make it writable, or set FOREDECK_HOME to a folder that you can write."
        return problem("home", f"{home} cannot be written: {error.strerror}", advice)
    return ok("home", str(home))


def _space(home: Path) -> Finding:
    free = shutil.disk_usage(_existing(home)).free
    text = f"{free // (1024 * 1024):,} MiB free"
    if free < FREE_BYTES_MIN:
        return problem("disk", text, "Free some space, or set FOREDECK_HOME to another disk.")
    return ok("disk", text)


def _file_system(home: Path) -> Finding:
    if is_network_filesystem(_existing(home)):
        return problem(
            "file system",
            f"{home} is on a network file system, where SQLite cannot lock reliably",
            "Set FOREDECK_HOME to a folder on a local disk.",
        )
    return ok("file system", "local")


def _existing(path: Path) -> Path:
    """The nearest folder on the way up that exists."""
    return path if path.is_dir() or path == path.parent else _existing(path.parent)
