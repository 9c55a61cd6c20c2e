"""The engine's store, and what takes its place when its file turns out to be damaged."""

from __future__ import annotations

from contextlib import suppress

from foredeck.config import Config
from foredeck.errors import StoreDamaged, StoreError
from foredeck.store.kind import open_beside, open_store, store_file
from foredeck.store.location import inode_of
from foredeck.store.protocol import Notify, Store


class RecoverableStore:
    """The configured store, in `current`. `given` takes its place, but is never replaced."""

    def __init__(self, config: Config, notify: Notify, given: Store | None = None) -> None:
        self._config = config
        self._notify = notify
        self._is_given = given is not None
        # Another engine may replace a damaged file first. The inode, taken before the file is
        # opened, tells whether the one at hand is still that which was found damaged.
        self._inode = inode_of(store_file(config))
        self.warnings: list[str] = []
        """Texts for the user about the opening."""
        self.current: Store = given or self._open()

    def _open(self) -> Store:
        try:
            store: Store = open_store(self._config, notify=self._notify)
            self._inode = inode_of(store_file(self._config))
        except StoreDamaged as damage:
            store, text = self._start_fresh(damage)
            self.warnings.append(text)
        return store

    def replace(self, damage: StoreDamaged) -> None:
        """Go on with a fresh store, and tell the user. Raises `damage` where that is impossible."""
        if self._is_given:
            raise damage
        with suppress(StoreError):
            self.current.close()
        self.current, text = self._start_fresh(damage)
        self._notify("error", text)

    def _start_fresh(self, damage: StoreDamaged) -> tuple[Store, str]:
        store, text = open_beside(self._config, damage, self._inode, notify=self._notify)
        self._inode = inode_of(store_file(self._config))
        return store, text

    @property
    def trouble(self) -> str:
        """What the status line says of the store; empty where all is well."""
        return self.current.trouble

    def close(self) -> None:
        """Close the store."""
        self.current.close()
