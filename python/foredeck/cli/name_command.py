"""`foredeck name`: an object's nickname, and what stands for it while it is not in view."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from foredeck.cli.common import add_config_flags, add_json_flag, add_object
from foredeck.cli.output import print_json
from foredeck.cli.registry import Command
from foredeck.cli.stored import find_asked, opened_store
from foredeck.context.state.descriptions import Description, describe_object, view_of
from foredeck.context.state.nicknames import give_nickname, nicknames
from foredeck.model.summaries import SUMMARIES, summary_hash_name
from foredeck.names.finding import Found
from foredeck.store.protocol import Head


def _run(args: Namespace) -> int:
    given = Description(_text(args.short), _text(args.long), _names(args.view))
    with opened_store(args) as store:
        found = find_asked(store, args)
        new = args.nickname is not None and give_nickname(store, found.head, args.nickname)
        if given != Description():
            new |= describe_object(store, store.head(found.id) or found.head, given)
        head = store.head(found.id) or found.head
        nickname = nicknames(store).get(found.id)
    if args.json:
        print_json(_described(found, head, new=new) | {"nickname": nickname})
    elif args.nickname is not None and given == Description():
        print(f"{found.name} is called {args.nickname}{'' if new else ' already'}.")
    else:
        print("\n".join(_lines(found, head, nickname)))
    return 0


def _text(argument: str | None) -> str | None:
    return sys.stdin.read() if argument == "-" else argument


def _names(argument: str | None) -> list[str] | None:
    return None if argument is None else argument.split(",")


def _described(found: Found, head: Head, *, new: bool) -> dict[str, Any]:
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


def _lines(found: Found, head: Head, nickname: str | None) -> list[str]:
    fields = head.fields
    whose = " (as every " + head.type + ")" if fields.get("view") is None else ""
    called = [f"nickname: {nickname}"] if nickname else []
    lines = [found.name, *called, f"view: {', '.join(view_of(head.type, fields))}{whose}"]
    for name in SUMMARIES:
        if fields.get(name):
            lines.append(f"{name.replace('_', ' ')}: {fields[name]}")
    return lines


def _configure(parser: ArgumentParser) -> None:
    add_object(parser)
    parser.add_argument(
        "nickname",
        metavar="NICKNAME",
        nargs="?",
        help="a name that no other object has, without spaces",
    )
    parser.add_argument(
        "--short",
        metavar="TEXT",
        help="set a summary of one line; - reads it from standard input, an empty text removes it",
    )
    parser.add_argument("--long", metavar="TEXT", help="set a longer summary, in the same way")
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
        "Give an object a nickname that you and the model can use from now on, or set what\n"
        "represents it while its content is not in view: its summaries, and its view, which is\n"
        "a list of fields. Without options, show what it has. A nickname belongs to one object\n"
        "at a time; a new one replaces it. A short summary is part of the view by itself, a\n"
        "long one only if --view names it. They stay when the content changes. In Pi, /foredeck\n"
        "name and /foredeck describe do the same."
    ),
    example="foredeck name src/main.ts entry",
    configure=_configure,
    run=_run,
)
