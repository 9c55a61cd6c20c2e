"""Opening the XTDB that a configuration names: the database itself, or the local copy in front."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.config import Config
from foredeck.errors import ConfigError
from foredeck.regular_files import read_text
from foredeck.store.protocol import Notify, silent
from foredeck.xtdb.journal.journal import JournalBounds
from foredeck.xtdb.journal.link import Link, OwnLink, ServerLink
from foredeck.xtdb.journal.store import JournaledStore, open_journaled
from foredeck.xtdb.node.process import own_node_folder

if TYPE_CHECKING:
    # An HTTP library takes longer to import than an engine to start.
    from foredeck.xtdb.database.adapter import XtdbStore

_ENGINE_PATIENCE, _COMMAND_PATIENCE = 2.0, 90.0
"""Seconds to wait at first for what is in XTDB; a model call waits behind an engine. A command
waits longer than a node may take to start: it does not report what it has not read."""


def copy_file(config: Config) -> Path:
    """The file of the local copy: one for each server and namespace."""
    where = "own"
    if config.xtdb.url is not None:
        where = hashlib.sha256(config.xtdb.url.rstrip("/").encode()).hexdigest()[:12]
    return config.home / "copies" / f"{where}-{config.xtdb.namespace}.db"


def open_copy(config: Config, *, notify: Notify = silent, lazy: bool = False) -> JournaledStore:
    """The local copy of the configured XTDB, and the journal of what waits for it."""
    bounds = JournalBounds(config.xtdb.journal_entries, config.xtdb.journal_mib * 2**20)
    return open_journaled(
        copy_file(config),
        _link(config, notify),
        bounds,
        notify=notify,
        lazy=lazy,
        patience=_COMMAND_PATIENCE if lazy else _ENGINE_PATIENCE,
        busy_timeout_ms=config.sqlite.busy_timeout_ms,
    )


def _link(config: Config, notify: Notify) -> Link:
    xtdb = config.xtdb
    if xtdb.url is None:
        return OwnLink(config.home, xtdb.topology, xtdb.namespace, xtdb.timeout_ms, notify)
    return ServerLink(xtdb.url, server_token(xtdb.token_file), xtdb.namespace, xtdb.timeout_ms)


def open_database(config: Config) -> XtdbStore:
    """The configured XTDB itself, without the local copy: a server that others run where
    one is named, else foredeck's own node, started if need be."""
    return _link(config, silent).open()


def server_token(file: Path | None) -> str | None:
    """The bearer token in a file; None where no file is named. Raises `ConfigError`."""
    if file is None:
        return None
    try:
        return read_text(file).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"xtdb.token_file: {file} cannot be read: {error}") from error


def token_of(config: Config) -> str | None:
    """The token that the configured XTDB asks for. Raises `ConfigError`."""
    if config.xtdb.url is None:
        return own_node_folder(config.home).token()
    return server_token(config.xtdb.token_file)
