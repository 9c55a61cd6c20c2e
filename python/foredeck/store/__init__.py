"""The store: an SQLite file, alone or as the local copy before a database.

A kind is imported when it is first used, so that SQLite does not wait for XTDB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Registered:
    """Where a kind of store is found: the module of its places, the form of its addresses, and its
    commands."""

    module: str
    address: str
    commands: Mapping[str, str] = field(default_factory=dict)

    @property
    def package(self) -> str:
        """Where the modules of its commands are."""
        return self.module.rpartition(".")[0]


STORES: Mapping[str, Registered] = {
    "sqlite": Registered("foredeck.store.place", "PATH"),
    "xtdb": Registered(
        "foredeck_xtdb.place",
        "URL",
        {"xtdb": "look after the XTDB node, and ask the store in it Datalog queries"},
    ),
}
