"""`foredeck mcp`: a server of the Model Context Protocol over stdin and stdout."""

from __future__ import annotations

from argparse import Namespace

from foredeck.cli.arguments import CONFIG, PATH, PROJECT, arguments, asked_folder, resolve_config
from foredeck.cli.registry import Command


def _run(args: Namespace) -> int:
    # The protocol's library takes a second that --help does without.
    from foredeck.mcp_server.server import make_server

    config = resolve_config(args).config
    make_server(config, asked_folder(args), writes=args.write).run("stdio")
    return 0


COMMAND = Command(
    description=(
        "Serve search, objects, notes and tasks to any client of the Model Context Protocol,\n"
        "over stdin and stdout: add `foredeck mcp` to the client's list of servers. It is\n"
        "read-only, unless --write is given. Private sessions are not served. Tasks are those\n"
        "of the current folder's project, or of --project."
    ),
    example="foredeck mcp --project ~/src/app",
    configure=arguments(
        f"""
        --write  let clients make and change tasks of the project
        {PROJECT}{CONFIG}
        """,
        project=PATH,
    ),
    run=_run,
)
