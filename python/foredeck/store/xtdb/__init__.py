"""The store on XTDB 1: `open_xtdb` gives an adapter to a node that runs."""

from foredeck.store.xtdb.adapter import XtdbStore, open_xtdb

__all__ = ["XtdbStore", "open_xtdb"]
