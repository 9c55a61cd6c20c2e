"""`foredeck ui`: the inspector in the browser."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace

from foredeck.cli.arguments import CONFIG, arguments, resolve_config
from foredeck.cli.person import check_person
from foredeck.cli.registry import Command

PORT = 8477


def _run(args: Namespace) -> int:
    config = resolve_config(args).config
    if args.edit:
        check_person(config.home, "Changing memory")
    # The web server takes a moment that --help does without.
    from foredeck.ui.app import serve

    return serve(config, args.port, opens=not args.no_open, edits=args.edit, follows=args.follow)


def port_number(text: str) -> int:
    """A port as it is written on a command line."""
    if not (text.isascii() and text.isdecimal() and int(text) < 65_536):
        raise ArgumentTypeError(f"must be a port, 0 to 65535, not {text!r}")
    return int(text)


COMMAND = Command(
    description=(
        "Open the inspector: pages on this machine that show what is stored. There is an\n"
        "overview of what was spent; sessions as trees of what was said and done, and as\n"
        "timelines of prompts; any prompt as the model saw it, and what changed in it; where a\n"
        "text was in view; objects with their versions, and who wrote which line; notes and\n"
        "references, tasks, memory, and search.\n\n"
        "The first line printed is the address with its token. Nothing can be read without the\n"
        "token, which is valid until Ctrl-C. The pages load nothing from elsewhere and\n"
        "change nothing, unless you start them with --edit. For programs, every address also\n"
        "works with .json at its end."
    ),
    example="foredeck ui",
    configure=arguments(
        f"""
        --port N  the port on loopback (default: {PORT}, or another where that is taken; 0: any)
        --no-open  print the address, and open no browser
        --edit  let memory be changed there: accept, refuse, pin, demote, delete
        --follow  open the session that is at work; its page renews itself at each call
        {CONFIG}
        """,
        port={"type": port_number},
    ),
    run=_run,
)
