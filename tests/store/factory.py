"""What the contract needs to know of an adapter: how to open one database, again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from foredeck.store.store import Store

MakeStore = Callable[[], Store]


@dataclass
class StoreFactory:
    """Opens stores on one database, which starts empty.

    `opener` is called without arguments, also in other processes: it must be picklable.
    """

    opener: Callable[[], Store]
    _opened: list[Store] = field(default_factory=list)

    def open(self) -> Store:
        """One more store on the same database; closed at the end of the test."""
        store = self.opener()
        self._opened.append(store)
        return store

    def close_all(self) -> None:
        """Close what `open` has opened."""
        for store in self._opened:
            store.close()
