"""What commands ask of a store in XTDB: its address for `foredeck migrate`, what `foredeck doctor`
reports, and empty stores for a replay.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.config import Config, load_config
from foredeck.errors import ConfigError, ForedeckError
from foredeck.finding import Finding, note, ok, problem
from foredeck.model.figures import counted
from foredeck.store.kind import Settings
from foredeck.xtdb.delivery import deliver_first, follow_anew
from foredeck.xtdb.journal.journal import read_backlog
from foredeck.xtdb.node.process import own_node_folder, private_node
from foredeck.xtdb.node.runtime import find_runtime
from foredeck.xtdb.opening import copy_file, open_database

if TYPE_CHECKING:
    from foredeck.xtdb.database.adapter import XtdbStore

_PATIENCE_MS = 60_000
"""How long one request of a copy may take: only the user who watches it waits."""


@dataclass(frozen=True, slots=True)
class XtdbPlace:
    """See `foredeck.store.kind.StorePlace`. `config` is that of the store at the address."""

    config: Config

    @classmethod
    def at(cls, config: Config, where: str) -> XtdbPlace:
        """The store at a server's address, or the configured one where that is empty. Raises
        `ConfigError`."""
        if where and not where.startswith(("http://", "https://")):
            raise ConfigError(f"{where!r}: an address begins with http:// or https://")
        url = where or config.xtdb.url
        xtdb = config.xtdb.model_copy(update={"url": url, "timeout_ms": _PATIENCE_MS})
        return cls(config.model_copy(update={"xtdb": xtdb, "store": "xtdb"}))

    def describe(self) -> str:
        """See `StorePlace.describe`."""
        where = self.config.xtdb.url or str(self.config.home / "xtdb")
        return f"xtdb:{where.rstrip('/')} ({self.config.xtdb.namespace})"

    def open(self, *, create: bool) -> XtdbStore:  # noqa: ARG002
        """See `StorePlace.open`: the database, once it has what waits for it in the local copy."""
        deliver_first(self.config)
        return open_database(self.config)

    def after_copy(self) -> None:
        """See `StorePlace.after_copy`: the local copy does not know what has come."""
        follow_anew([copy_file(self.config)])


def check_xtdb(config: Config) -> Finding:
    """A node of foredeck's own is not started for this."""
    try:
        if config.xtdb.url is None and own_node_folder(config.home).running() is None:
            java = find_runtime(config.home).java
            return ok("store", f"XTDB, installed, on Java {java.version}; started at first use")
        with closing(open_database(config)) as store:
            store.latest()
    except ForedeckError as error:
        return problem(
            "store", str(error), "`foredeck xtdb status` and `foredeck xtdb logs` show more."
        )
    return ok("store", f"XTDB {config.xtdb.url or 'of our own'} answers")


def check_journal(config: Config) -> Finding:
    """What waits for XTDB in the local copy."""
    backlog = read_backlog(copy_file(config))
    if backlog.quarantined:
        return problem(
            "journal",
            f"XTDB has refused {backlog.quarantined} transactions: {backlog.reason}",
            "They are quarantined in the local copy, and tried again when Pi is started next.",
        )
    if backlog.entries == 0:
        return ok("journal", "nothing waits for XTDB")
    text = f"{counted(backlog.entries, 'transaction')} of {backlog.bytes:,} bytes wait for XTDB"
    if backlog.entries * 2 > config.xtdb.journal_entries:
        return note("journal", text, "`foredeck xtdb status` shows whether XTDB runs.")
    return ok("journal", text)


@contextmanager
def stores_in_memory() -> Iterator[Settings]:
    """One node in memory, with a namespace for each store; it ends with the block, or with this
    process. Raises `StoreUnavailable` where no node is installed."""
    # Only where the node is installed is taken from the user's own configuration.
    installed = load_config(environ=os.environ).config.home
    with (
        tempfile.TemporaryDirectory(prefix="foredeck-replay-xtdb-") as root,
        private_node(Path(root) / "node", find_runtime(installed)) as node,
    ):
        running = node.running()
        assert running is not None
        shared = (
            "store=xtdb",
            f"xtdb.url={running.url}",
            f"xtdb.token_file={node.token_file}",
            "xtdb.timeout_ms=60000",
        )
        yield lambda number: (*shared, f"xtdb.namespace=session-{number}")
