"""`foredeck xtdb query`: read-only Datalog queries."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from foredeck.cli.arguments import (
    EXAMPLES,
    NUMBER,
    PATH,
    USUAL,
    arguments,
    parse_moment,
)
from foredeck.cli.output import print_json, table
from foredeck.cli.person import given_text
from foredeck.config import Config
from foredeck.errors import ForedeckError, StoreUnavailable
from foredeck.model.figures import counted
from foredeck.store.protocol import Token
from foredeck_xtdb.database.client import Refused, XtdbClient
from foredeck_xtdb.database.datalog import QueryRefused, prepare
from foredeck_xtdb.database.documents import XtdbNames
from foredeck_xtdb.database.reading import XtdbReader
from foredeck_xtdb.link import server_token
from foredeck_xtdb.maintenance import deliver_first, settled_node
from foredeck_xtdb.node import own_node_folder, start
from foredeck_xtdb.runtime import find_runtime

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
        return {"tx-id": reader.tx_id(Token(args.as_of))}
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
