"""Serving the proxy on loopback: as long as a command runs, or until it is interrupted."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path

import uvicorn

from foredeck.config import Config
from foredeck.proxy.app import Proxy
from foredeck.proxy.clients import run_through, upstreams
from foredeck.proxy.conversations import Conversations, ProxyOptions
from foredeck.ui.access import LOOPBACK, listening_on

NOT_FOUND = 127


def serve(
    config: Config,
    command: Sequence[str],
    *,
    port: int,
    upstream: str | None,
    private: bool,
    tools: bool,
    window: int | None,
    settings: Mapping[str, str],
) -> int:
    """Serve until the command ends, whose exit code is returned; without one until Ctrl-C.

    Raises `PortTaken`.
    """
    with ExitStack() as stack:
        home, kept = config.home, f"what is said is stored in {config.home}."
        if private:
            folder = tempfile.TemporaryDirectory(prefix="foredeck-", ignore_cleanup_errors=True)
            home, kept = Path(stack.enter_context(folder)), "nothing is kept when it ends."
        stack.enter_context(_logging(None if private else home))
        options = ProxyOptions(Path.cwd(), home, kept, tools, window, settings)
        listener = stack.enter_context(listening_on([port]))
        return asyncio.run(_serve(options, listener, command, upstream))


async def _serve(
    options: ProxyOptions,
    listener: socket.socket,
    command: Sequence[str],
    upstream: str | None,
) -> int:
    port = listener.getsockname()[1]
    notices: list[str] = []
    bases = upstreams(upstream, os.environ)
    proxy = Proxy(Conversations(options), port, bases, notices.append if command else _say)
    server = (_QuietServer if command else uvicorn.Server)(
        uvicorn.Config(
            proxy, log_level="critical", lifespan="off", server_header=False, date_header=False
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        if not command:
            _announce(port, proxy.token)
            await serving
            return 0
        return await _run(command, port, proxy.token)
    finally:
        server.should_exit = True
        await serving
        await proxy.close()
        for text in notices:
            _say(text)


@contextmanager
def _logging(home: Path | None) -> Iterator[None]:
    """What went wrong in detail is in `logs/proxy.log` of the state folder: stderr is the agent's
    screen."""
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
        """See `uvicorn.Server`."""
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
    for name in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(name, process.terminate)
    code = await process.wait()
    return code if code >= 0 else 128 - code


def _announce(port: int, token: str) -> None:
    address = f"http://{LOOPBACK}:{port}/{token}"
    print(f"ANTHROPIC_BASE_URL={address}/anthropic")
    print(f"OPENAI_BASE_URL={address}/openai")
    print(f"What it has done: {address}/", flush=True)


def _say(text: str) -> None:
    print(f"foredeck: {text}", file=sys.stderr, flush=True)
