"""`foredeck name`: a nickname for an object."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.common import add_config_flags, add_json_flag, add_object
from foredeck.cli.output import print_json
from foredeck.cli.registry import Command
from foredeck.cli.stored import find_asked, opened_store


def _run(args: Namespace) -> int:
    from foredeck.context.state.nicknames import give_nickname

    with opened_store(args) as store:
        found = find_asked(store, args)
        new = give_nickname(store, found.head, args.nickname)
    if args.json:
        print_json({"object": found.id, "nickname": args.nickname, "new": new})
    else:
        print(f"{found.name} is called {args.nickname}{'' if new else ' already'}.")
    return 0


def _configure(parser: ArgumentParser) -> None:
    add_object(parser)
    parser.add_argument(
        "nickname", metavar="NICKNAME", help="a name that no other object has, without spaces"
    )
    add_json_flag(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "Give an object a nickname, by which you and the model can call it from then on. A\n"
        "nickname means one object at a time; the one that an object had before is free again.\n"
        "/foredeck name does the same inside Pi."
    ),
    example="foredeck name src/main.ts entry",
    configure=_configure,
    run=_run,
)
