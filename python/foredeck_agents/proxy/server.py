"""`foredeck proxy`: serves the proxy on loopback as long as an agent runs."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import signal
import socket
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path

import uvicorn

from foredeck.cli.arguments import resolve_config
from foredeck.config import Config
from foredeck.config.load import looser_than_private
from foredeck.engine.current import RecoverableStore
from foredeck.errors import ForedeckError
from foredeck.loopback import LOOPBACK, listening_on
from foredeck.regular_files import open_regular
from foredeck.store.protocol import silent
from foredeck_agents.proxy.agents import run_through, upstreams
from foredeck_agents.proxy.app import Proxy
from foredeck_agents.proxy.conversations import Conversations, ProxyOptions

NOT_FOUND = 127
"""Shells' exit code for a missing command."""

_NO_REQUEST = (
    "No request of {} came through, so foredeck did nothing. Do its settings name another address "
    "of the provider, or does a wrapper start it?"
)
_TOKEN = re.compile(r"[\w-]{32,200}")
_MANY_BYTES = 1024


def run(args: Namespace) -> int:
    """`foredeck proxy`: serves until the agent ends, and returns its exit code. Raises
    `ForedeckError`."""
    config = resolve_config(args).config
    settings = dict(text.split("=", 1) for text in args.set)
    with ExitStack() as stack:
        home, kept = config.home, f"what is said is stored in {config.home}."
        if args.private:
            folder = tempfile.TemporaryDirectory(prefix="foredeck-", ignore_cleanup_errors=True)
            home, kept = Path(stack.enter_context(folder)), "nothing is kept when it ends."
        stack.enter_context(_logging(None if args.private else home))
        token = None if args.token_file is None else kept_token(args.token_file)
        options = ProxyOptions(Path.cwd(), home, kept, not args.no_tools, args.window, settings)
        listener = stack.enter_context(listening_on([args.port]))
        warnings = [] if args.private else store_warnings(config)
        return asyncio.run(_serve(options, listener, args.agent, args.upstream, token, warnings))


async def _serve(
    options: ProxyOptions,
    listener: socket.socket,
    command: Sequence[str],
    upstream: str | None,
    token: str | None,
    warnings: Sequence[str],
) -> int:
    port = listener.getsockname()[1]
    notices: list[str] = []
    bases = upstreams(upstream, os.environ, command)
    proxy = Proxy(
        Conversations(options),
        port,
        bases,
        # An agent has the screen from now on.
        notices.append if command else _say,
        token=token,
        environment=os.environ,
    )
    for text in warnings:
        _say(text)
        proxy.notes.append(text)
    # Its log would go to the agent's screen, and its headers would stand beside the provider's.
    server = (_QuietServer if command else uvicorn.Server)(
        uvicorn.Config(
            proxy,
            log_level="critical",
            lifespan="off",
            ws="none",
            server_header=False,
            date_header=False,
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        if not command:
            _announce(port, proxy.token)
            await serving
            return 0
        code = await _run(command, port, proxy.token)
        if not proxy.requests and code != NOT_FOUND:
            notices.append(_NO_REQUEST.format(Path(command[0]).name))
        return code
    finally:
        server.should_exit = True
        await serving
        await proxy.close()
        # Only now: the agent had the screen.
        for text in notices:
            _say(text)


def kept_token(path: Path) -> str:
    """The token in a file, made (0600) if missing.

    Raises `ForedeckError` for a file without one, or readable by others.
    """
    try:
        descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
        with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
            if looser_than_private(path):
                raise ForedeckError(f"Others can read the token in {path}: chmod 600 {path}")
            # Editors on Windows put a byte order mark before it.
            token = file.read(_MANY_BYTES).strip().removeprefix("\ufeff")
            if not token:
                token = secrets.token_urlsafe(32)
                file.write(token + "\n")
    except (OSError, ValueError) as error:
        raise ForedeckError(f"{path} cannot be used for the token: {error}") from error
    if not _TOKEN.fullmatch(token):
        raise ForedeckError(
            f"{path} holds no token of 32 characters or more (A-Z, a-z, 0-9, - and _). Without the "
            "file a new one is made."
        )
    return token


def store_warnings(config: Config) -> list[str]:
    """Warnings about the store, before anything is kept in it."""
    try:
        store = RecoverableStore(config, silent)
        store.current.close()
    except ForedeckError as error:
        return [str(error)]
    return store.warnings


@contextmanager
def _logging(home: Path | None) -> Iterator[None]:
    """Logs to `logs/proxy.log`, since stderr is the agent's screen."""
    handler: logging.Handler = logging.NullHandler()
    if home is not None:
        folder = home / "logs"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handler = RotatingFileHandler(folder / "proxy.log", maxBytes=1_000_000, backupCount=1)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


class _QuietServer(uvicorn.Server):
    """Leaves signals to the command that it serves."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _run(command: Sequence[str], port: int, token: str) -> int:
    """Run a command to its end; its exit code."""
    run = run_through(command, port, token, os.environ)
    try:
        process = await asyncio.create_subprocess_exec(*run.command, env=dict(run.environment))
    except FileNotFoundError:
        _say(f"{command[0]} was not found: is it installed, and in PATH?")
        return NOT_FOUND
    except OSError as error:
        _say(f"{command[0]} cannot be run: {error.strerror or error}")
        return NOT_FOUND
    loop = asyncio.get_running_loop()
    # A Ctrl-C in the terminal reaches the command by itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Whoever ends this process means the agent: it ends first, and its last requests are served.
    for name in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(name, process.terminate)
    code = await process.wait()
    # As shells say of a command that a signal has ended.
    return code if code >= 0 else 128 - code


def _announce(port: int, token: str) -> None:
    address = f"http://{LOOPBACK}:{port}/{token}"
    print(f"ANTHROPIC_BASE_URL={address}/anthropic")
    print(f"OPENAI_BASE_URL={address}/openai")
    print(f"What it has done: {address}/", flush=True)


def _say(text: str) -> None:
    print(f"foredeck: {text}", file=sys.stderr, flush=True)
