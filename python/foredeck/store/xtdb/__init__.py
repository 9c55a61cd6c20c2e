"""The store on XTDB 1: an adapter to any server, and a node of foredeck's own."""

from foredeck.store.xtdb.adapter import XtdbStore, open_xtdb
from foredeck.store.xtdb.supervise import open_own_node

__all__ = ["XtdbStore", "open_own_node", "open_xtdb"]
