"""The store on XTDB 1: an adapter to any server, and a node of foredeck's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foredeck.store.xtdb.adapter import XtdbStore, open_xtdb
    from foredeck.store.xtdb.supervise import open_own_node

__all__ = ["XtdbStore", "open_own_node", "open_xtdb"]


def __getattr__(name: str) -> Any:
    """Imported when it is asked for: the adapter brings an HTTP library along."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from foredeck.store.xtdb import adapter, supervise

    return getattr(supervise if name == "open_own_node" else adapter, name)
