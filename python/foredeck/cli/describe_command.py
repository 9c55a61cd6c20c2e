"""`foredeck describe`: what stands for an object while its content is not in view."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from foredeck.cli.common import add_config_flags, add_json_flag, add_object
from foredeck.cli.output import print_json
from foredeck.cli.registry import Command
from foredeck.cli.stored import find_asked, opened_store

if TYPE_CHECKING:
    from foredeck.lookup.finding import Found
    from foredeck.store.protocol import Head


def _run(args: Namespace) -> int:
    from foredeck.context.state.descriptions import Description, describe_object

    given = Description(_text(args.short), _text(args.long), _names(args.view))
    with opened_store(args) as store:
        found = find_asked(store, args)
        new = False
        if given != Description():
            new = describe_object(store, found.head, given)
        head = store.head(found.id) or found.head
    if args.json:
        print_json(_described(found, head, new=new))
    else:
        print("\n".join(_lines(found, head)))
    return 0


def _text(argument: str | None) -> str | None:
    return sys.stdin.read() if argument == "-" else argument


def _names(argument: str | None) -> list[str] | None:
    return None if argument is None else argument.split(",")


def _described(found: Found, head: Head, *, new: bool) -> dict[str, Any]:
    from foredeck.context.state.descriptions import view_of
    from foredeck.model.summaries import SUMMARIES, summary_hash_name

    fields = head.fields
    return {
        "object": head.id,
        "path": found.path,
        "type": head.type,
        "view": view_of(head.type, fields),
        "of_type": fields.get("view") is None,
        "metadata_view_hash": fields.get("metadata_view_hash"),
        **{name: fields.get(name) for name in SUMMARIES},
        **{summary_hash_name(n): fields.get(summary_hash_name(n)) for n in SUMMARIES},
        "new": new,
    }


def _lines(found: Found, head: Head) -> list[str]:
    from foredeck.context.state.descriptions import view_of
    from foredeck.model.summaries import SUMMARIES

    fields = head.fields
    whose = " (as every " + head.type + ")" if fields.get("view") is None else ""
    lines = [found.name, f"view: {', '.join(view_of(head.type, fields))}{whose}"]
    for name in SUMMARIES:
        if fields.get(name):
            lines.append(f"{name.replace('_', ' ')}: {fields[name]}")
    return lines


def _configure(parser: ArgumentParser) -> None:
    add_object(parser)
    parser.add_argument(
        "--short",
        metavar="TEXT",
        help="one line that says what the object is; - reads it from the standard input, an empty "
        "text takes it away",
    )
    parser.add_argument("--long", metavar="TEXT", help="the same for a longer summary")
    parser.add_argument(
        "--view",
        metavar="FIELDS",
        help="names of the fields that stand for the object, with commas between them, such as "
        "path,short_summary; default for those of its type",
    )
    add_json_flag(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "Show or set what stands for an object while its content is not in view: its view, which\n"
        "is a list of fields, and its summaries. A short summary joins the view by itself, a long\n"
        "one only if --view names it. They stay with the object when its content changes.\n"
        "/foredeck describe sets a short summary inside Pi."
    ),
    example='foredeck describe docs/plan.md --short "What is to be done by when"',
    configure=_configure,
    run=_run,
)
