"""`foredeck trace`: at which calls the model could see a text, and where it was otherwise."""

from __future__ import annotations

from argparse import Namespace

from foredeck.accounting.trace import Trace, rows_of, trace
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.prompts import named_session, with_prompts
from foredeck.errors import NotFound
from foredeck.lookup.sessions import checked_call
from foredeck.model.figures import counted
from foredeck.model.records import call_id
from foredeck.store.protocol import Store


def run(args: Namespace) -> int:
    """`foredeck trace`."""
    if not args.text.strip():
        raise NotFound("there is nothing to look for: give a name, a path or any other text.")
    with named_session(args) as named, with_prompts(named, args) as (store, _):
        found = _trace(store, named.session, args)
    if args.json:
        print_json(found.to_json())
    else:
        _print(found)
    return 0


def _trace(store: Store, session: str, args: Namespace) -> Trace:
    last = call_id(session, checked_call(store, session, args.call))
    with Progress("reading calls") as progress:
        return trace(store, session, args.text, last, progress.advance)


def _print(found: Trace) -> None:
    rows = [tuple(cell.replace("\n", " ") for cell in row) for row in rows_of(found)]
    print(f"{found.text!r} in session {found.session}, {counted(found.calls, 'call')}")
    print()
    print(table([("calls", "state", "where"), *rows]))
