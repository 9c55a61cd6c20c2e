"""`foredeck xtdb status`: whether the node runs and keeps up, and what waits for it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foredeck.cli.output import print_json, table
from foredeck.errors import StoreError
from foredeck.lookup.texts import counted, short_count
from foredeck.store.clock import now_ms

if TYPE_CHECKING:
    from foredeck.config import Config
    from foredeck.xtdb.database.client import XtdbClient
    from foredeck.xtdb.node.folder import NodeInfo

_PATIENCE_MS = 5_000
"""A node that takes longer to answer is reported as one that does not."""


def node_facts(node: NodeInfo) -> dict[str, Any]:
    """A running node, as JSON output has it."""
    return {"url": node.url, "pid": node.pid, "port": node.port, "topology": node.topology}


def run_status(args: Namespace, config: Config) -> int:
    """Exit code 0 where a node answers and indexes, 3 where none does."""
    from foredeck.xtdb.database.client import XtdbClient
    from foredeck.xtdb.node.runtime import how_to_start, is_installed
    from foredeck.xtdb.node.supervise import own_node_folder
    from foredeck.xtdb.opening import token_of

    folder = own_node_folder(config.home)
    node = folder.running()
    url = config.xtdb.url or (None if node is None else node.url)
    found: dict[str, Any] = {"running": url is not None, "url": url, "healthy": False}
    if node is not None and config.xtdb.url is None:
        uptime = now_ms() - node.started_ms
        found |= {**node_facts(node), "uptime_ms": uptime, "data_bytes": _size_of(folder.data)}
    if url is None:
        found["installed"] = is_installed(config.home)
    found["journal"] = journal_facts(config)
    if url is not None:
        client = XtdbClient(
            url, token=token_of(config), timeout_ms=min(config.xtdb.timeout_ms, _PATIENCE_MS)
        )
        try:
            found |= _health(client)
        except StoreError as error:
            found["error"] = str(error)
        finally:
            client.close()
    hint = how_to_start(config.home) if folder.is_free() else "one is being started or stopped"
    print_json(found) if args.json else _print_status(found, hint)
    return 0 if found["healthy"] else 3


def journal_facts(config: Config) -> dict[str, Any]:
    """What waits in the local copy until XTDB has it."""
    from foredeck.xtdb.journal.journal import read_backlog
    from foredeck.xtdb.opening import copy_file

    backlog = read_backlog(copy_file(config))
    oldest = backlog.oldest_ms
    return {
        "entries": backlog.entries,
        "bytes": backlog.bytes,
        "oldest_ms": oldest,
        "lag_ms": 0 if oldest is None else max(0, now_ms() - oldest),
        "refused": backlog.quarantined,
        "reason": backlog.reason,
    }


def _health(client: XtdbClient) -> dict[str, Any]:
    status = client.status()
    submitted, completed = client.latest("submitted"), client.latest("completed")
    failed = bool(status.get("ingesterFailed?"))
    return {
        "version": status.get("version"),
        "index": status.get("kvStore"),
        "keys": status.get("estimateNumKeys"),
        "submitted_tx": submitted,
        "indexed_tx": completed,
        "lag": count_of(submitted) - count_of(completed),
        "ingester_failed": failed,
        "healthy": not failed,
    }


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _print_status(found: dict[str, Any], hint: str) -> None:
    journal = found.pop("journal")
    if not found["running"]:
        print(f"No XTDB node answers here; {hint}.")
    else:
        rows = [(_label(name), _shown(name, value)) for name, value in found.items()]
        print(table(rows))
    print(describe_journal(journal))
    if found.get("ingester_failed"):
        print("Indexing has failed: `foredeck xtdb down`, then `foredeck xtdb up`; see its log.")


def describe_journal(journal: dict[str, Any]) -> str:
    """What `journal_facts` has found, in a sentence."""
    if journal["refused"]:
        return (
            f"Journal: XTDB has refused {counted(journal['refused'], 'transaction')} "
            f"({journal['reason']}); they are quarantined in the local copy, and tried again "
            "when Pi is started next."
        )
    if not journal["entries"]:
        return "Journal: nothing waits for XTDB."
    return (
        f"Journal: {counted(journal['entries'], 'transaction')} ({short_count(journal['bytes'])}B) "
        f"wait for XTDB, the oldest for {journal['lag_ms'] / 1000:.0f} s; an engine at work "
        "delivers them, `foredeck xtdb sync` does at once."
    )


def _label(name: str) -> str:
    return name.removesuffix("_ms").removesuffix("_bytes").replace("_", " ")


def _shown(name: str, value: Any) -> str:
    if name.endswith("_bytes"):
        return f"{short_count(value)}B"
    if name == "uptime_ms":
        return f"{value / 1000:.0f} s"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def count_of(tx_id: int | None) -> int:
    """How many transactions there are up to one; XTDB counts from 0, None is before the first."""
    return 0 if tx_id is None else tx_id + 1
