"""How XTDB is reached: a server of others, or a node of foredeck's own."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.config import Config
from foredeck.errors import ConfigError, StoreError, StoreUnavailable
from foredeck.regular_files import read_text
from foredeck.store.protocol import Notify, silent
from foredeck_xtdb.node import IsCancelled, never, own_node_folder, start, stop
from foredeck_xtdb.runtime import find_runtime, runtime_folder

if TYPE_CHECKING:
    # An HTTP library takes longer to import than an engine to start.
    from foredeck_xtdb.database.adapter import Database

LOOK_MS = 2_000
"""Longest request while the agent waits, in milliseconds."""
_CHECK_MS = 300

SHARED = frozenset({"postgres", "kafka"})
"""Topologies in which other machines write, too."""


@dataclass(frozen=True, slots=True)
class ServerLink:
    """A server of others, never started or stopped.

    `shared`: whether others than these engines write there.
    """

    url: str
    token: str | None
    namespace: str
    timeout_ms: int
    shared: bool = True

    def is_new(self) -> bool:
        """Whether nothing can be stored there yet."""
        return False

    def check(self, *, first: bool) -> None:
        """Raises `StoreUnavailable` if waiting cannot help: no such node, or a wrong token at the
        `first` check."""
        if not first:
            return
        try:
            self._open(_CHECK_MS).close()
        except StoreUnavailable as error:
            self.check_error(error)

    def check_error(self, error: StoreError | None) -> None:
        """Raises an error of `connect` if trying again cannot help."""
        # The client loads with the first contact: an engine may start while XTDB is away.
        from foredeck_xtdb.database.client import TokenRefused

        if isinstance(error, TokenRefused):
            raise error

    def connect(self, is_cancelled: IsCancelled = never) -> Database:  # noqa: ARG002
        """Opens the store, starting foredeck's own node unless cancelled. May take seconds."""
        return self._open(self.timeout_ms)

    def open(self) -> Database:
        """Opens the store for a command, which starts foredeck's own node when needed."""
        return self._open(self.timeout_ms)

    def look(self) -> Database:
        """Opens the store for reading, with little patience; starts nothing."""
        return self._open(min(self.timeout_ms, LOOK_MS))

    def restart(self, reason: str) -> None:
        """Restarts foredeck's own server after it gave up. Raises `StoreUnavailable` with the
        reason for others."""
        raise StoreUnavailable(f"{reason}; whoever runs the server must start it again")

    def _open(self, timeout_ms: int) -> Database:
        return _open_database(self.url, self.token, self.namespace, timeout_ms)


MOST_STARTS = 5
"""Restarts of a node within `WINDOW_SECONDS`."""
WINDOW_SECONDS = 60.0


class OwnLink:
    """The node of a state folder, started when needed."""

    def __init__(
        self, home: Path, topology: str, namespace: str, timeout_ms: int, notify: Notify
    ) -> None:
        """Tells the user of restarts by `notify`."""
        self.shared = topology in SHARED
        self._home = home
        self._topology = topology
        self._namespace = namespace
        self._timeout_ms = timeout_ms
        self._notify = notify
        self._folder = own_node_folder(home)
        self._starts: deque[float] = deque()
        self._ran = False
        self._notified = False

    def is_new(self) -> bool:
        """Whether nothing can have been stored there yet."""
        return not self.shared and not self._folder.data.exists()

    def check(self, *, first: bool) -> None:  # noqa: ARG002
        # Java is not started for this: that takes longer than all the rest.
        if not runtime_folder(self._home).is_dir() and self._folder.running() is None:
            find_runtime(self._home)

    def check_error(self, error: StoreError | None) -> None: ...

    def connect(self, is_cancelled: IsCancelled = never) -> Database:
        """See `ServerLink.connect`."""
        if not self._ran:
            url = self._start(is_cancelled)
        elif (node := self._folder.running()) is not None:
            url = node.url
        elif self._folder.is_stopped_by_user:
            raise StoreUnavailable("`foredeck xtdb down` has stopped the node: `up` starts it")
        else:
            url = self._revive(is_cancelled)
            self._say_that_it_had_ended()
        self._ran = True
        return self._open(url, self._timeout_ms)

    def open(self) -> Database:
        return self._open(self._start(), self._timeout_ms)

    def look(self) -> Database:
        node = self._folder.running()
        if node is None:
            raise StoreUnavailable("the XTDB node does not run")
        return self._open(node.url, min(self._timeout_ms, LOOK_MS))

    def restart(self, reason: str) -> None:
        stop(self._folder)
        raise StoreUnavailable(reason)

    def _start(self, is_cancelled: IsCancelled = never) -> str:
        runtime = find_runtime(self._home)
        topology = self._topology
        return start(self._folder, runtime, topology=topology, is_cancelled=is_cancelled)[0].url

    def _revive(self, is_cancelled: IsCancelled = never) -> str:
        """Starts a node that does not answer. Raises `StoreUnavailable` for one that keeps
        ending."""
        now = time.monotonic()
        while self._starts and now - self._starts[0] > WINDOW_SECONDS:
            self._starts.popleft()
        if len(self._starts) >= MOST_STARTS:
            raise StoreUnavailable(
                f"the XTDB node has ended {MOST_STARTS} times in {WINDOW_SECONDS:.0f} s; its log "
                f"says why: {self._folder.log_file}"
            )
        self._starts.append(now)
        return self._start(is_cancelled)

    def _say_that_it_had_ended(self) -> None:
        if not self._notified:
            self._notified = True
            self._notify(
                "warning",
                "The XTDB node had ended and was started again; nothing is lost. Its log may say "
                f"why: {self._folder.log_file}",
            )

    def _open(self, url: str, timeout_ms: int) -> Database:
        return _open_database(url, self._folder.token(), self._namespace, timeout_ms)


Link = ServerLink | OwnLink
"""A way to one store in XTDB."""


def _open_database(url: str, token: str | None, namespace: str, timeout_ms: int) -> Database:
    # The client loads with the first contact: an engine may start while XTDB is away.
    from foredeck_xtdb.database.adapter import open_xtdb

    return open_xtdb(url, token=token, namespace=namespace, timeout_ms=timeout_ms)


# What a configuration names


def copy_file(config: Config) -> Path:
    """The local copy's file, one per server and namespace."""
    where = "own"
    if config.xtdb.url is not None:
        where = hashlib.sha256(config.xtdb.url.rstrip("/").encode()).hexdigest()[:12]
    return config.home / "copies" / f"{where}-{config.xtdb.namespace}.db"


def link_of(config: Config, notify: Notify) -> Link:
    """The way to the configured XTDB. `notify`: as of `OwnLink`."""
    xtdb = config.xtdb
    if xtdb.url is None:
        return OwnLink(config.home, xtdb.topology, xtdb.namespace, xtdb.timeout_ms, notify)
    return ServerLink(xtdb.url, server_token(xtdb.token_file), xtdb.namespace, xtdb.timeout_ms)


def open_database(config: Config) -> Database:
    """The configured XTDB itself, without the local copy."""
    return link_of(config, silent).open()


def server_token(file: Path | None) -> str | None:
    """The bearer token in a file, if one is named. Raises `ConfigError`."""
    if file is None:
        return None
    try:
        return read_text(file).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"xtdb.token_file: {file} cannot be read: {error}") from error


def token_of(config: Config) -> str | None:
    """The configured XTDB's token. Raises `ConfigError`."""
    if config.xtdb.url is None:
        return own_node_folder(config.home).token()
    return server_token(config.xtdb.token_file)
