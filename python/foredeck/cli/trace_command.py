"""`foredeck trace`: at which calls the model could see a text, and where it was otherwise."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.accounting.trace import Trace, trace
from foredeck.accounting.trace_lines import rows_of
from foredeck.cli.common import add_config_flags, add_json_flag, positive
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.prompts import add_session, named_session, with_prompts
from foredeck.cli.registry import Command
from foredeck.errors import NotFound
from foredeck.lookup.texts import counted
from foredeck.model.records import call_id
from foredeck.store.protocol import Store


def _run(args: Namespace) -> int:
    if not args.text.strip():
        raise NotFound("there is nothing to look for: give a name, a path or any other text.")
    with named_session(args) as named, with_prompts(named, args) as (store, session):
        found = _trace(store, session, args)
    if args.json:
        print_json(found.to_json())
    else:
        _print(found)
    return 0


def _trace(store: Store, session: str, args: Namespace) -> Trace:
    calls = len(store.query("call", {"session": session}))
    if args.call is not None and args.call > calls:
        raise NotFound(f"session {session} has no call {args.call}; its calls: 1 to {calls}.")
    with Progress("reading calls") as progress:
        last = call_id(session, args.call or calls)
        return trace(store, session, args.text, last, progress.advance)


def _print(found: Trace) -> None:
    rows = [tuple(cell.replace("\n", " ") for cell in row) for row in rows_of(found)]
    print(f"{found.text!r} in session {found.session}, {counted(found.calls, 'call')}")
    print()
    print(table([("calls", "state", "where"), *rows]))


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "text", metavar="TEXT", help="a name, a path, or any other text, spelled exactly"
    )
    add_session(parser)
    parser.add_argument(
        "--call",
        metavar="N",
        type=positive,
        help="follow the branch that ends with this call (default: the last)",
    )
    add_json_flag(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "Show at which calls the model could see a text: in view (and where), announced\n"
        "(folded, but named by a digest or summary), folded (why, since when, and what keeping\n"
        "it would have cost), compacted with the chat around it, or never seen. This explains\n"
        "why an agent repeated something or missed it. Costs are in tokens of uncached input.\n\n"
        'JSON: {"session", "text", "calls", "spans": [{"first", "last", "calls", "state",\n'
        '"places"}]}.'
    ),
    example="foredeck trace parse_config 0199",
    configure=_configure,
    run=_run,
)
