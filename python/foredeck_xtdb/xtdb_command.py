"""`foredeck xtdb`: the node behind the store `xtdb`, and queries to it."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from foredeck.cli.arguments import (
    EXAMPLES,
    NUMBER,
    PATH,
    USUAL,
    arguments,
    parse_moment,
    resolve_config,
)
from foredeck.cli.output import Progress, answer, print_json, table, typed
from foredeck.cli.person import given_text
from foredeck.cli.registry import Command
from foredeck.config import Config, ensure_home
from foredeck.errors import ForedeckError, StoreError, StoreUnavailable
from foredeck.model.figures import counted, short_bytes
from foredeck.store.clock import now_ms
from foredeck_xtdb.database.client import Refused, XtdbClient
from foredeck_xtdb.database.datalog import QueryRefused, prepare
from foredeck_xtdb.database.documents import XtdbNames
from foredeck_xtdb.database.reading import XtdbReader
from foredeck_xtdb.installing import install, remove_old
from foredeck_xtdb.journal import read_backlog
from foredeck_xtdb.link import copy_file, server_token, token_of
from foredeck_xtdb.maintenance import deliver_first, settled_node
from foredeck_xtdb.node import NodeInfo, log_tail, own_node_folder, start, stop
from foredeck_xtdb.runtime import find_runtime, how_to_start, is_installed

_WIDEST = 80
"""Characters of one cell; --json prints everything."""
_MOST_ROWS = 100
_QUERY_SECONDS = 30


class QueryFailed(ForedeckError):
    pass


def run_query(args: Namespace, config: Config) -> int:
    """Ask, and print the rows."""
    timeout_ms = args.timeout * 1000
    limits = {"limit": args.limit + 1, "timeout_ms": timeout_ms}
    query = prepare(given_text(args.query), args.values, **limits, namespace=config.xtdb.namespace)
    if args.url is None and config.store == "xtdb":
        _deliver(config)
    url, token = _server(args, config)
    # The server ends the query; this side waits a little longer for it to say so.
    client = XtdbClient(url, token=token, timeout_ms=timeout_ms + 2_000)
    with closing(client):
        basis = _basis(args, XtdbReader(client, XtdbNames(config.xtdb.namespace)))
        rows = [] if basis is None else _ask(client, query.body, basis, args.timeout)
    shown = [query.values(row) for row in rows[: args.limit]]
    if args.json:
        print_json({"columns": query.columns, "rows": shown, "more": len(rows) > args.limit})
    else:
        _print_rows(query.columns, shown)
        if len(rows) > args.limit:
            print(f"There are more than {args.limit}: --limit shows more.", file=sys.stderr)
    return 0


def _deliver(config: Config) -> None:
    try:
        deliver_first(config)
    except StoreUnavailable as error:
        print(f"Not all is in XTDB yet: {error}", file=sys.stderr)


def _server(args: Namespace, config: Config) -> tuple[str, str | None]:
    """Address and token: of the named server, the configured one, or the local node."""
    xtdb = config.xtdb
    if url := args.url or xtdb.url:
        return url, server_token(args.token_file or xtdb.token_file)
    folder = own_node_folder(config.home)
    if config.store == "xtdb":
        started, *_ = start(folder, find_runtime(config.home), topology=xtdb.topology)
        return started.url, folder.token()
    if (node := settled_node(config)) is not None:
        return node.url, folder.token()
    raise StoreUnavailable(
        "Datalog is XTDB's, and the store here is SQLite. FOREDECK_STORE=xtdb or --url URL say "
        "which XTDB is meant; `foredeck migrate sqlite xtdb` copies what is stored here. On SQLite "
        "`foredeck objects`, `sessions`, `history`, `cat`, `graph` and `search`, each with --json, "
        "only read, too."
    )


def _basis(args: Namespace, reader: XtdbReader) -> dict[str, int] | None:
    """The transaction as of which a query looks, if any.

    Raises `Missing` for an unknown token, `QueryRefused` for no time.
    """
    if args.as_of is not None:
        return {"tx-id": reader.tx_id(args.as_of)}
    if args.at is None:
        return {}
    if (moment := parse_moment(args.at)) is None:
        raise QueryRefused(f"{args.at!r} is no point in time, such as {EXAMPLES}")
    token = reader.newest_at(moment)
    return None if token is None else {"tx-id": reader.tx_id(token)}


def _ask(client: XtdbClient, body: str, basis: Mapping[str, int], seconds: int) -> list[Any]:
    try:
        return client.ask(body, basis)
    except Refused as error:
        if "TimeoutException" in error.text:
            raise QueryFailed(
                f"the query was ended after {seconds} s: make it more selective (its first "
                "clauses should leave few rows), or allow more with --timeout"
            ) from error
        raise QueryFailed(f"XTDB refused the query: {_reason(error)}") from error


def _reason(error: Refused) -> str:
    try:
        answer = json.loads(error.text)
        return str(answer.get("error") or answer.get("message") or error.text)
    except (ValueError, AttributeError):
        return error.text or f"status {error.status}"


def _print_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    if rows:
        print(table([tuple(columns), *(tuple(map(_cell, row)) for row in rows)]))
    print(f"\n{counted(len(rows), 'row')}" if rows else "No rows.")


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text.replace("\n", "\\n").replace("\t", "\\t")
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


QUERY = (
    "Run a read-only Datalog query against the store in XTDB. Every object is a document\n"
    "with :foredeck/type, :foredeck/token (the transaction of its newest version), and the\n"
    "keys that it is found by: :foredeck/source_path, session, tool, status, nickname and so\n"
    'on (docs/xtdb.md lists them). In :find, (field ?e "args.command") gives any of its\n'
    "fields. Functions outside XTDB's own allow list are refused, on any server. Columns\n"
    "are cut to fit the terminal; --json prints everything."
)
"""What `--help` says of it."""

configure_query = arguments(
    f"""
    query: EDN  the query, a map or a vector; - reads it from stdin
    values: [VALUE...]  values for the query's :in, in order: EDN, anything else is text
    --limit N  print at most this many rows (default: %(default)s)
    --timeout SECONDS  end the query after this time (default: %(default)s)
    --as-of TOKEN  the store as it was after a transaction, as `history --json` names it
    | --at TIME  the store as it was at a time: 2026-03-01T14:30:00+01:00, 14:30, 2h ago
    --url URL  a server, instead of the configured one
    --token-file FILE  file with the token that it asks for
    {USUAL}
    """,
    limit=NUMBER | {"default": _MOST_ROWS},
    timeout=NUMBER | {"default": _QUERY_SECONDS},
    token_file=PATH,
)


_STEPS = 43
"""About how many steps installing reports: jars, and compiling."""


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
    where = f"at {node.url}, process {node.pid}"
    said = (
        f"XTDB runs {where}, after {took:.1f} s; data in {folder.data}."
        if started
        else f"XTDB runs already {where}."
    )
    value = {"started": started, **node_facts(node), "token_file": folder.token_file}
    return answer(args, value, said)


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
