"""Serving the proxy on loopback, as long as a command runs or until it is interrupted; and how a
coding agent is given its address for one run, without touching its files."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path, PurePath
from typing import NamedTuple

import uvicorn

from foredeck.config import Config
from foredeck.proxy.app import TOKEN_HEADER, UPSTREAMS, Proxy
from foredeck.proxy.conversations import Conversations, ProxyOptions
from foredeck.ui.access import LOOPBACK, listening_on

NOT_FOUND = 127
"""The exit code of shells for a command that is not there."""

_TOKEN_VARIABLE = "FOREDECK_PROXY_TOKEN"
_BASES = {"anthropic": ("ANTHROPIC_BASE_URL",), "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE")}
"""Variables in which agents look for their provider's address."""


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

    Raises `ForedeckError`.
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
    options: ProxyOptions, listener: socket.socket, command: Sequence[str], upstream: str | None
) -> int:
    port = listener.getsockname()[1]
    notices: list[str] = []
    bases = upstreams(upstream, os.environ)
    proxy = Proxy(Conversations(options), port, bases, notices.append if command else _say)
    # Its log would go to the agent's screen, and its headers would stand beside the provider's.
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
        # Only now: the agent had the screen.
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


class AgentRun(NamedTuple):
    """A command as it is started."""

    command: Sequence[str]
    environment: Mapping[str, str]


def upstreams(given: str | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Where requests go: to the address that is given, else to the one that the agent would use
    without foredeck."""
    found = {}
    for provider, names in _BASES.items():
        own = next((environment[name] for name in names if environment.get(name)), None)
        found[provider] = given or own or UPSTREAMS[provider]
    return found


def run_through(
    command: Sequence[str], port: int, token: str, environment: Mapping[str, str]
) -> AgentRun:
    """The command with the proxy's addresses."""
    base = f"http://127.0.0.1:{port}"
    addresses = {provider: f"{base}/{token}/{provider}" for provider in _BASES}
    changed = dict(environment)
    for provider, names in _BASES.items():
        changed |= dict.fromkeys(names, addresses[provider])
    name = PurePath(command[0]).stem
    if name == "codex":
        # Its address is an argument, which all users of the machine can read: the token is not
        # in it.
        changed[_TOKEN_VARIABLE] = token
        return AgentRun([command[0], *_codex(base, environment), *command[1:]], changed)
    if name == "opencode":
        changed["OPENCODE_CONFIG_CONTENT"] = _opencode(addresses, environment)
    return AgentRun(list(command), changed)


def _codex(base: str, environment: Mapping[str, str]) -> list[str]:
    folder = Path(environment.get("CODEX_HOME") or Path.home() / ".codex")
    # Who has not logged in has a key in the environment.
    logged_in = (folder / "auth.json").exists() or not environment.get("OPENAI_API_KEY")
    key = "requires_openai_auth=true" if logged_in else 'env_key="OPENAI_API_KEY"'
    provider = (
        f'{{name="OpenAI",base_url="{base}/openai",wire_api="responses",{key},'
        f'env_http_headers={{"{TOKEN_HEADER}"="{_TOKEN_VARIABLE}"}}}}'
    )
    return ["-c", f"model_providers.foredeck={provider}", "-c", 'model_provider="foredeck"']


def _opencode(addresses: Mapping[str, str], environment: Mapping[str, str]) -> str:
    try:
        config = json.loads(environment.get("OPENCODE_CONFIG_CONTENT") or "{}")
    except ValueError:
        config = {}
    providers = config.setdefault("provider", {})
    for name, path in (("anthropic", "/v1"), ("openai", "")):
        options = providers.setdefault(name, {}).setdefault("options", {})
        options["baseURL"] = addresses[name] + path
    return json.dumps(config)
