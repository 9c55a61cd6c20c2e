"""`foredeck proxy`: any agent, with foredeck before its model."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from pathlib import Path
from urllib.parse import urlsplit

from foredeck.cli.arguments import CONFIG, NUMBER, arguments, port_number, resolve_config
from foredeck.cli.registry import Command


def _run(args: Namespace) -> int:
    # The web server takes a moment that --help does without.
    from foredeck_agents.proxy.server import serve

    config = resolve_config(args).config

    return serve(
        config,
        args.agent,
        port=args.port,
        upstream=args.upstream,
        private=args.private,
        tools=not args.no_tools,
        window=args.window,
        token_file=args.token_file,
        settings=dict(text.split("=", 1) for text in args.set),
    )


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_address = False
    if not is_address:
        raise ArgumentTypeError(f"must be an address with http:// or https://, not {text!r}")
    return text


COMMAND = Command(
    description=(
        "Run a coding agent with foredeck between it and its model, over Anthropic's Messages API\n"
        "or OpenAI's Chat Completions and Responses APIs. Keys pass through and are not kept.\n"
        "Where foredeck fails, the request goes out as it came."
    ),
    example="foredeck proxy -- claude",
    configure=arguments(
        f"""
        agent: [COMMAND...]  the agent with its arguments, after `--`; without one the addresses are
            printed
        --port N  the port on loopback (default: any that is free)
        --upstream URL  where requests go (default: as the agent's environment says)
        --window TOKENS  the model's context window, if unusual for its provider
        --token-file FILE  keep the token, so that with --port a client survives a restart
        --private  keep nothing of what is said when it ends
        --no-tools  give the model none of foredeck's own tools
        {CONFIG}
        """,
        port={"type": port_number, "default": 0},
        upstream={"type": _address},
        window=NUMBER,
        token_file={"type": Path},
    ),
    run=_run,
)
