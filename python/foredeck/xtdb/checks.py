"""Whether XTDB can be reached, or a node of one's own started: a part of `foredeck doctor`."""

from __future__ import annotations

from contextlib import closing

from foredeck.config import Config
from foredeck.errors import ForedeckError
from foredeck.finding import Finding, note, ok, problem
from foredeck.model.figures import counted
from foredeck.xtdb.journal.journal import read_backlog
from foredeck.xtdb.node.runtime import find_runtime
from foredeck.xtdb.node.supervise import own_node_folder
from foredeck.xtdb.opening import copy_file, open_database


def check_xtdb(config: Config) -> Finding:
    """A node of foredeck's own is not started for this."""

    try:
        if config.xtdb.url is None and own_node_folder(config.home).running() is None:
            java = find_runtime(config.home).java
            return ok("store", f"XTDB, installed, on Java {java.version}; started at first use")
        with closing(open_database(config)) as store:
            store.latest()
    except ForedeckError as error:
        return problem(
            "store", str(error), "`foredeck xtdb status` and `foredeck xtdb logs` show more."
        )
    return ok("store", f"XTDB {config.xtdb.url or 'of our own'} answers")


def check_journal(config: Config) -> Finding:
    """What waits for XTDB in the local copy."""
    backlog = read_backlog(copy_file(config))
    if backlog.quarantined:
        return problem(
            "journal",
            f"XTDB has refused {backlog.quarantined} transactions: {backlog.reason}",
            "They are quarantined in the local copy, and tried again when Pi is started next.",
        )
    if backlog.entries == 0:
        return ok("journal", "nothing waits for XTDB")
    text = f"{counted(backlog.entries, 'transaction')} of {backlog.bytes:,} bytes wait for XTDB"
    if backlog.entries * 2 > config.xtdb.journal_entries:
        return note("journal", text, "`foredeck xtdb status` shows whether XTDB runs.")
    return ok("journal", text)
