"""`foredeck xtdb`: the node behind the store `xtdb`, and queries to it."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

from foredeck.cli.arguments import (
    USUAL,
    arguments,
    resolve_config,
)
from foredeck.cli.output import Progress, answer, table, typed
from foredeck.cli.registry import Command
from foredeck.config import Config, ensure_home
from foredeck.errors import StoreError
from foredeck.model.figures import counted, short_bytes
from foredeck.store.clock import now_ms
from foredeck_xtdb.database.client import XtdbClient
from foredeck_xtdb.installing import install, remove_old
from foredeck_xtdb.journal import read_backlog
from foredeck_xtdb.link import copy_file, token_of
from foredeck_xtdb.maintenance import deliver_first
from foredeck_xtdb.node import NodeFolder, NodeInfo, log_tail, own_node_folder, start, stop
from foredeck_xtdb.query_command import QUERY, configure_query, run_query
from foredeck_xtdb.runtime import find_runtime, how_to_start, is_installed

_STEPS = 43
"""About how many steps installing reports: jars, and compiling."""
_REQUEST_MS = 30_000
_POLL = 0.1


def _run(args: Namespace) -> int:
    config = resolve_config(args).config
    ensure_home(config.home)
    run = _ACTIONS[args.action][1]
    return run(args, config)


def _install(args: Namespace, config: Config) -> int:
    began = time.monotonic()
    with Progress("installing the XTDB node", total=_STEPS) as progress:
        runtime = install(config.home, lambda note: progress.advance(note=note))
    java = {"path": runtime.java.path, "version": runtime.java.version}
    lines = [
        f"The XTDB node is installed in {runtime.folder} ({time.monotonic() - began:.0f} s), "
        f"on Java {runtime.java.version} ({runtime.java.path}).\n"
        "`foredeck xtdb up` starts it; FOREDECK_STORE=xtdb starts it by itself."
    ]
    return answer(args, {"folder": runtime.folder, "java": java}, lines)


def _up(args: Namespace, config: Config) -> int:
    folder = own_node_folder(config.home)
    began = time.monotonic()
    node, started, _ = start(
        folder, find_runtime(config.home), topology=config.xtdb.topology, port=args.port
    )
    took = time.monotonic() - began
    remove_old(config.home)
    _await_index(node, folder)
    where = f"at {node.url}, process {node.pid}"
    said = (
        f"XTDB runs {where}, after {took:.1f} s; data in {folder.data}."
        if started
        else f"XTDB runs already {where}."
    )
    value = {"started": started, **node_facts(node), "token_file": folder.token_file}
    return answer(args, value, said)


def _await_index(node: NodeInfo, folder: NodeFolder) -> None:
    """Waits until the node has indexed its log. Raises `StoreError`."""
    client = XtdbClient(node.url, token=folder.token(), timeout_ms=_REQUEST_MS)
    with closing(client):
        goal = client.latest("submitted")
        if goal is None:
            return
        total = count_of(goal)
        with Progress("indexing, transaction", total=total) as progress:
            while (done := count_of(client.latest("completed"))) < total:
                progress.advance(done - progress.done)
                if client.status().get("ingesterFailed?"):
                    raise StoreError(f"the node cannot index its log; see {folder.log_file}")
                time.sleep(_POLL)


def _down(args: Namespace, config: Config) -> int:
    folder = own_node_folder(config.home)
    if folder.root.is_dir():
        # Before it ends, so that no engine at work takes it for a crash.
        folder.mark_stopped(True)
    node = stop(folder)
    none = f"No XTDB node runs here; {how_to_start(config.home)}."
    said = none if node is None else f"Stopped process {node.pid}."
    return answer(args, {"stopped": node is not None}, said)


def _sync(args: Namespace, config: Config) -> int:
    """Returns 0 if nothing waits any more, 1 if XTDB has refused something."""
    delivered, left = deliver_first(config)
    delivered -= left.quarantined
    report = {"delivered": delivered, "refused": left.quarantined, "reason": left.reason}
    done = f"Delivered {counted(delivered, 'transaction')}."
    lines = [done if delivered else "Nothing to deliver."]
    if left.quarantined:
        lines.append(describe_journal(journal_facts(config)))
    return answer(args, report, lines, 1 if left.quarantined else 0)


def _logs(args: Namespace, config: Config) -> int:
    folder = own_node_folder(config.home)
    file = folder.log_file
    none = [f"No node has run here yet; {how_to_start(config.home)}.", f"Its log will be {file}"]
    lines = log_tail(file, args.lines) if file.exists() else none
    return answer(args, {"file": file, "exists": file.exists()}, lines)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, help="what to do; each has its own --help"
    )
    for name, (text, _) in _ACTIONS.items():
        action = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if name == "query":
            action.description = QUERY
            configure_query(action)
            continue
        arguments(USUAL)(action)
        if name == "up":
            port = {"type": int, "default": 0}
            arguments("--port N  port (default: any free one)", port=port)(action)
        if name == "logs":
            lines = {"type": int, "default": 50}
            arguments("--lines N  how many (default: %(default)s)", lines=lines)(action)


COMMAND = Command(
    description=(
        "Install, start and stop an XTDB node of your own, with its data in the state folder.\n"
        "With FOREDECK_STORE=xtdb foredeck keeps its objects there and starts the node by itself.\n"
        "To use somebody else's server, set FOREDECK_XTDB_URL instead."
    ),
    example="foredeck xtdb install && foredeck xtdb up && foredeck xtdb status",
    configure=_configure,
    run=_run,
)


_PATIENCE_MS = 5_000
"""A slower node is reported as one that does not answer."""


def node_facts(node: NodeInfo) -> dict[str, Any]:
    return {"url": node.url, "pid": node.pid, "port": node.port, "topology": node.topology}


def _status(args: Namespace, config: Config) -> int:
    """Returns 0 if a node answers and indexes, 3 if none does."""
    folder = own_node_folder(config.home)
    node = folder.running()
    url = config.xtdb.url or (None if node is None else node.url)
    found: dict[str, Any] = {"running": url is not None, "url": url, "healthy": False}
    if node is not None and config.xtdb.url is None:
        uptime = now_ms() - node.started_ms
        size = sum(path.stat().st_size for path in folder.data.rglob("*") if path.is_file())
        found |= {**node_facts(node), "uptime_ms": uptime, "data_bytes": size}
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
    return answer(args, found, _lines(found, hint), 0 if found["healthy"] else 3)


def journal_facts(config: Config) -> dict[str, Any]:
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


def _lines(found: dict[str, Any], hint: str) -> Iterator[str]:
    if not found["running"]:
        yield f"No XTDB node answers here; {hint}."
    else:
        shown = {name: value for name, value in found.items() if name != "journal"}
        yield table([(_label(name), _shown(name, value)) for name, value in shown.items()])
    yield describe_journal(found["journal"])
    if found.get("ingester_failed"):
        yield typed(
            "Indexing has failed: `foredeck xtdb down`, then `foredeck xtdb up`; see its log."
        )


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
        f"Journal: {counted(journal['entries'], 'transaction')} ({short_bytes(journal['bytes'])}) "
        f"wait for XTDB, the oldest for {journal['lag_ms'] / 1000:.0f} s; an engine at work "
        "delivers them, `foredeck xtdb sync` does at once."
    )


def _label(name: str) -> str:
    return name.removesuffix("_ms").removesuffix("_bytes").replace("_", " ")


def _shown(name: str, value: Any) -> str:
    if name.endswith("_bytes"):
        return f"{short_bytes(value)}"
    if name == "uptime_ms":
        return f"{value / 1000:.0f} s"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def count_of(tx_id: int | None) -> int:
    """Number of transactions up to one; XTDB counts from 0."""
    return 0 if tx_id is None else tx_id + 1


_ACTIONS: dict[str, tuple[str, Callable[[Namespace, Config], int]]] = {
    "install": (
        "download the jars (and Java, if there is none) and compile the node, once",
        _install,
    ),
    "up": (
        "start the node, or say where it runs; it keeps running after the terminal is closed",
        _up,
    ),
    "down": ("stop the node", _down),
    "sync": ("deliver pending transactions of the local copy now, and wait for XTDB", _sync),
    "status": ("show whether the node runs, and whether it keeps up with its log", _status),
    "logs": ("print the end of the node's log", _logs),
    "query": ("ask the store in XTDB a read-only Datalog query", run_query),
}
"""Help and function of each action; the function returns the exit code."""
