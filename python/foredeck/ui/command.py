"""`foredeck ui`: the inspector in the browser."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.common import add_config_flags, resolve_config
from foredeck.cli.person import check_person
from foredeck.cli.registry import Command

PORT = 8477


def _run(args: Namespace) -> int:
    config = resolve_config(args).config
    if args.edit:
        check_person(config.home, "Changing memory")
    from foredeck.ui.server import serve

    return serve(config, args.port, opens=not args.no_open, edits=args.edit, follows=args.follow)


def port_number(text: str) -> int:
    """A port as it is written on a command line."""
    from argparse import ArgumentTypeError

    if not (text.isascii() and text.isdecimal() and int(text) < 65_536):
        raise ArgumentTypeError(f"must be a port, 0 to 65535, not {text!r}")
    return int(text)


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        metavar="N",
        type=port_number,
        default=None,
        help=f"the port on loopback (default: {PORT}, or another where that is taken; 0: any)",
    )
    parser.add_argument(
        "--no-open", action="store_true", help="print the address, and open no browser"
    )
    parser.add_argument(
        "--edit",
        action="store_true",
        help="let memory be changed there: accept, refuse, pin, demote, delete",
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="open the session that is at work; its page renews itself at each call",
    )
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "Serve pages on loopback that show what is stored: an overview of what was spent,\n"
        "sessions as trees of what was said and done and as timelines of prompts, any prompt\n"
        "as the model saw it and what changed in it, where a text stood, objects with their\n"
        "versions and who wrote which line, notes and references, tasks, memory, search.\n"
        "The first line printed is the address with its token; without the token nobody reads\n"
        "anything. Nothing is fetched from anywhere else, and without --edit nothing is changed.\n"
        "The token is good until Ctrl-C. Each address has a twin for programs: the same path with\n"
        ".json."
    ),
    example="foredeck ui",
    configure=_configure,
    run=_run,
)
