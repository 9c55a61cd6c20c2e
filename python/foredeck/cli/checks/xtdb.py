"""The store on XTDB: can it be reached, or is there a node that can be started."""

from __future__ import annotations

from contextlib import closing

from foredeck.cli.checks.finding import Finding, ok, problem
from foredeck.config import Config
from foredeck.errors import ForedeckError
from foredeck.stores import open_store


def check_xtdb(config: Config) -> Finding:
    """A node of foredeck's own is not started for this."""
    from foredeck.store.xtdb.runtime import find_runtime
    from foredeck.store.xtdb.supervise import own_node_folder

    try:
        if config.xtdb.url is None and own_node_folder(config.home).running() is None:
            java = find_runtime(config.home).java
            return ok("store", f"XTDB, installed, on Java {java.version}; started at first use")
        with closing(open_store(config)) as store:
            store.latest()
    except ForedeckError as error:
        return problem("store", str(error), "`foredeck xtdb status` and `logs` tell more.")
    return ok("store", f"XTDB {config.xtdb.url or 'of our own'} answers")
