"""Configuration, state folder and store: can they be used, and by this user alone."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from foredeck.cli.checks.finding import Finding, note, ok, problem
from foredeck.cli.checks.xtdb import check_journal, check_xtdb
from foredeck.cli.common import resolve_config
from foredeck.config import Config, looser_than_private
from foredeck.errors import ConfigError, StoreUnavailable
from foredeck.store.location import is_network_filesystem
from foredeck.store.sqlite.schema import check_ours

FREE_BYTES_MIN = 256 * 1024 * 1024
_ELSEWHERE = "Set FOREDECK_HOME to a folder of its own, or move that file away."


def check_config(args: Namespace) -> tuple[Config, Finding]:
    """The configuration as this command line sees it, or the defaults if it cannot be used."""
    try:
        config = resolve_config(args).config
    except ConfigError as error:
        advice = "Correct it; docs/configuration.md explains the keys. Checked with defaults."
        return Config(), problem("config", str(error), advice)
    return config, ok("config", "every layer can be read")


def check_state(config: Config) -> Iterator[Finding]:
    """The state folder and the store in it. Changes nothing but a file that it removes again."""
    home = config.home
    if not home.exists():
        yield _home_to_be(home)
    elif not home.is_dir():
        advice = _ELSEWHERE
        yield problem("home", f"{home} is not a folder", advice)
        return
    else:
        yield _permissions(home)
        yield _writable(home)
    yield _space(home)
    yield _file_system(home)
    if config.store == "sqlite":
        yield _store(config.sqlite_file)
    else:
        yield check_xtdb(config)
        yield check_journal(config)


def _home_to_be(home: Path) -> Finding:
    parent = _existing(home)
    if not os.access(parent, os.W_OK | os.X_OK):
        advice = f"Make {parent} writable, or set FOREDECK_HOME to a folder that you can write."
        return problem("home", f"{home} is not there, and {parent} is not writable", advice)
    return ok("home", f"{home} (made at first use)")


def _permissions(home: Path) -> Finding:
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


def _store(file: Path) -> Finding:
    if not file.exists():
        return ok("store", f"{file} (made at first use)")
    advice = "Move it away with its -wal and -shm files to start anew; keep it to report the error."
    try:
        connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
        try:
            answer = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            check_ours(connection)
        finally:
            connection.close()
    except StoreUnavailable as error:
        return problem("store", f"{file}: {error}", _ELSEWHERE)
    except sqlite3.OperationalError as error:
        return problem("store", f"{file} cannot be opened: {error}", f"Check who may read {file}.")
    except sqlite3.DatabaseError as error:
        return problem("store", f"{file} is damaged: {error}", advice)
    if answer != "ok":
        return problem("store", f"{file} is damaged: {answer}", advice)
    size = file.stat().st_size / (1024 * 1024)
    loose = looser_than_private(file) and looser_than_private(file.parent)
    if loose:
        return note("store", f"other users can read {file}", f"Run: chmod 600 {file}")
    return ok("store", f"{file}, {size:,.1f} MiB, no damage found")


def _existing(path: Path) -> Path:
    """The nearest folder on the way up that exists."""
    return path if path.is_dir() or path == path.parent else _existing(path.parent)
