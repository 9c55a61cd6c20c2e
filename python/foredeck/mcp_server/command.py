"""`foredeck mcp`: a server of the Model Context Protocol over stdin and stdout."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.arguments import add_config_flags, add_project_flags, asked_folder, resolve_config
from foredeck.cli.registry import Command


def _run(args: Namespace) -> int:
    # The protocol's library takes a second that --help does without.
    from foredeck.mcp_server.server import make_server

    config = resolve_config(args).config
    make_server(config, asked_folder(args), writes=args.write).run("stdio")
    return 0


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--write", action="store_true", help="let clients make and change tasks of the project"
    )
    add_project_flags(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "Serve search, objects, notes and tasks to any client of the Model Context Protocol,\n"
        "over stdin and stdout: add `foredeck mcp` to the client's list of servers. It is\n"
        "read-only, unless --write is given. Private sessions are not served. Tasks are those\n"
        "of the current folder's project, or of --project."
    ),
    example="foredeck mcp --project ~/src/app",
    configure=_configure,
    run=_run,
)
