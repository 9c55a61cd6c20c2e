"""How long the pages of `foredeck ui` take over a large store, and how much memory."""

from __future__ import annotations

import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress, print_json, table
from foredeck.cli.registry import Command
from foredeck.config import Config
from foredeck.lookup.reader import Reader
from foredeck.model.documents import Provenance, SessionDocument, chat_id, session_object_id
from foredeck.model.figures import short_count
from foredeck.store.kind import open_store
from foredeck.store.protocol import Batch, LocalStore, Store
from foredeck.ui.app import collect_seldom
from foredeck.ui.pages import WebPage, render
from foredeck.ui.views.overview import overview_page
from foredeck.ui.views.prompts import prompt_diff_page, prompt_page
from foredeck.ui.views.sessions import session_page, sessions_page, turns_page
from foredeck.ui.views.turns import TurnsListing
from foredeck_bench.measure.growth import grow

SESSION = "bench"
TIMES = 5
_PER_COMMIT = 500

Advance = Callable[[int], None]


def measure_inspector(calls: int, sessions: int, advance: Advance) -> dict[str, Any]:
    """Pages over a session of `calls` calls, and a store that lists `sessions` more.

    Milliseconds are of processor time: the median of `TIMES`, and the first, which nothing had
    been read before. `bytes` is the size of the page. `advance` is told of calls that were made.
    """
    with tempfile.TemporaryDirectory(prefix="foredeck-ui-") as folder:
        home = Path(folder) / "home"
        grow(Path(folder), advance, (calls,))
        config = Config(home=home)
        with closing(open_store(config)) as store:
            add_sessions(store, sessions)
        collect_seldom()
        views: dict[str, Callable[[LocalStore], WebPage]] = {
            "overview": lambda store: overview_page(store, config),
            "sessions": lambda store: sessions_page(store),
            "session": lambda store: session_page(store, SESSION, None),
            "session, first calls": lambda store: session_page(store, SESSION, 1),
            "turns": lambda store: turns_page(store, SESSION, TurnsListing()),
            "prompt": lambda store: prompt_page(store, SESSION, calls),
            "changes": lambda store: prompt_diff_page(store, SESSION, calls, None),
        }
        return {
            "calls": calls,
            "sessions": sessions + 1,
            "pages": {name: _timed(Reader(config), view) for name, view in views.items()},
        }


def add_sessions(store: Store, count: int) -> None:
    """Put so many sessions without any calls into a store."""
    ids = [f"{number:08d}-none" for number in range(count)]
    for first in range(0, count, _PER_COMMIT):
        puts = [_document(id) for id in ids[first : first + _PER_COMMIT]]
        store.commit(Batch(puts=list(puts)))


def _document(id: str) -> SessionDocument:
    return SessionDocument(
        id=session_object_id(id),
        session_id=id,
        chat_ref=chat_id(id),
        system_prompt_ref="",
        cwd=f"/projects/{int(id[:8]) % 40}",
        provenance=Provenance(origin="bench", generator="system"),
    ).seal()


def _timed(reader: Reader, view: Callable[[LocalStore], WebPage]) -> dict[str, float]:
    times, size = [], 0
    for _ in range(TIMES):
        began = time.process_time()
        with reader.store() as store:
            size = len(render(view(store)).encode())
        times.append((time.process_time() - began) * 1000)
    return {"ms": round(median(times), 1), "first_ms": round(times[0], 1), "bytes": size}


# The command


CALLS, SESSIONS = 5_000, 3_000


def _run(args: Namespace) -> int:
    with Progress("making a session, call") as progress:
        found = measure_inspector(args.calls, args.sessions, lambda _: progress.advance())
    if args.json:
        print_json(found)
        return 0
    rows = [("page", "ms", "first", "size")]
    for name, page in found["pages"].items():
        size = f"{short_count(page['bytes'])}B"
        rows.append((name, f"{page['ms']:.0f}", f"{page['first_ms']:.0f}", size))
    print(table(rows))
    print(f"\nA session of {found['calls']:,} calls, {found['sessions']:,} sessions in the store.")
    return 0


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--calls",
        metavar="N",
        type=positive,
        default=CALLS,
        help="calls of the session (default: %(default)s)",
    )
    parser.add_argument(
        "--sessions",
        metavar="N",
        type=positive,
        default=SESSIONS,
        help="other sessions in the store (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Make a long session and a store with many, and time the pages that show them, from\n"
        "opening the store to the finished HTML. Times are processor time; a page is made again\n"
        "for each request, nothing is kept in between."
    ),
    example="foredeck bench ui --calls 1000 --json",
    configure=_configure,
    run=_run,
)
