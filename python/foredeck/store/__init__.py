"""The store: documents and blobs, in one of several kinds of databases, which are listed here.

A kind is imported when a configuration first names it, so that work with SQLite does not wait
for what XTDB brings along; and the command line reads this table before it imports anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Registered:
    """Where a kind of store is found.

    package   its module `kind` holds the `StoreKind` as `KIND`
    address   what an address names after `NAME:`, for `--help`
    commands  the commands that it adds, with a line on each: NAME is `COMMAND` in the package's
              module `NAME_command`
    """

    package: str
    address: str
    commands: Mapping[str, str] = field(default_factory=dict)


STORES: Mapping[str, Registered] = {
    "sqlite": Registered("foredeck.store.sqlite", "PATH"),
    "xtdb": Registered(
        "foredeck.xtdb",
        "URL",
        {"xtdb": "look after the XTDB node, and ask the store in it Datalog queries"},
    ),
}
