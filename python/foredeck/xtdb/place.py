"""A store in XTDB by its address, as `foredeck migrate` copies from and to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from foredeck.errors import ConfigError
from foredeck.xtdb.commands.delivering import deliver_first
from foredeck.xtdb.delivery import follow_anew
from foredeck.xtdb.opening import copy_file, open_database

if TYPE_CHECKING:
    from foredeck.config import Config
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
