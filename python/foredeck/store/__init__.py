"""The store, in one of several kinds of databases.

A kind is imported when it is first used, so that SQLite does not wait for XTDB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Registered:
    """Where a kind of store is found: its package, the form of its addresses, and its commands."""

    package: str
    address: str
    commands: Mapping[str, str] = field(default_factory=dict)


STORES: Mapping[str, Registered] = {
    "sqlite": Registered("foredeck.store", "PATH"),
    "xtdb": Registered(
        "foredeck_xtdb",
        "URL",
        {"xtdb": "look after the XTDB node, and ask the store in it Datalog queries"},
    ),
}
