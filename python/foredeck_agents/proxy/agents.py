"""How an agent is started so that it asks the proxy: addresses, variables and options."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from foredeck.regular_files import read_text
from foredeck_agents.proxy.app import PROJECT_VARIABLE, UPSTREAMS
from foredeck_agents.proxy.upstream import TOKEN_HEADER

BASES = {"anthropic": ("ANTHROPIC_BASE_URL",), "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE")}
"""Variables in which agents look for their provider's address."""
_TOKEN_VARIABLE = "FOREDECK_PROXY_TOKEN"
_EXEMPT = ("NO_PROXY", "no_proxy")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_CODEX = "openai"
"""The provider that Codex has built in."""


class AgentRun(NamedTuple):
    """A command as it is started."""

    command: Sequence[str]
    environment: Mapping[str, str]


def upstreams(
    given: str | None, environment: Mapping[str, str], command: Sequence[str] = ()
) -> dict[str, str]:
    """Upstream addresses: the given one, else the agent's usual."""
    bases = {}
    for provider, names in BASES.items():
        own = next((environment[name] for name in names if environment.get(name)), None)
        bases[provider] = given or own or UPSTREAMS[provider]
    if command and _name(command) == "codex":
        _, base = _codex_provider(command, environment)
        bases["codex"] = given or base or bases["openai"]
    return bases


def run_through(
    command: Sequence[str], port: int, token: str, environment: Mapping[str, str]
) -> AgentRun:
    """The command with the proxy's addresses."""
    base = f"http://127.0.0.1:{port}"
    addresses = {provider: f"{base}/{token}/{provider}" for provider in BASES}
    changed = {**environment, **exempt(environment)}
    for provider, names in BASES.items():
        changed |= dict.fromkeys(names, addresses[provider])
    name = _name(command)
    if name == "codex":
        given, variables = _codex(command, f"{base}/codex", token, environment)
        return AgentRun([command[0], *given, *command[1:]], changed | variables)
    if name == "opencode":
        changed["OPENCODE_CONFIG_CONTENT"] = _opencode(addresses, environment)
    return AgentRun(list(command), changed)


def exempt(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that keep requests to this machine from a company's proxy, where the API key would
    be readable."""
    set_here = {name: environment[name] for name in _EXEMPT if environment.get(name)}
    # Programs read one spelling or the other.
    values = {name: set_here.get(name) or next(iter(set_here.values()), "") for name in _EXEMPT}
    return {name: _with_loopback(value) for name, value in values.items()}


def _with_loopback(value: str) -> str:
    hosts = [host.strip() for host in value.split(",") if host.strip()]
    if hosts == ["*"]:
        # Some programs know it only where it stands alone.
        return value
    return ",".join([*hosts, *(host for host in _LOOPBACK if host not in hosts)])


def _name(command: Sequence[str]) -> str:
    return PurePath(command[0]).stem


def _codex(
    command: Sequence[str], base: str, token: str, environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Arguments and variables for Codex.

    The provider's name stays, since Codex lists sessions by it; the token goes by a variable, since
    arguments are public.
    """
    name, _ = _codex_provider(command, environment)
    if name == _CODEX:
        # The one header of this provider's that a variable fills, and that few use; the proxy puts
        # the user's own project back in.
        variables = {PROJECT_VARIABLE: token}
        key = environment.get("OPENAI_API_KEY")
        if (
            key
            and not environment.get("CODEX_API_KEY")
            and not _codex_file("auth.json", environment).exists()
        ):
            variables["CODEX_API_KEY"] = key
        return ["-c", f'openai_base_url="{base}"'], variables
    place = f'model_providers."{name}"' if "." in name else f"model_providers.{name}"
    header = f'{place}.env_http_headers.{TOKEN_HEADER}="{_TOKEN_VARIABLE}"'
    return ["-c", f'{place}.base_url="{base}"', "-c", header], {_TOKEN_VARIABLE: token}


def _codex_provider(
    command: Sequence[str], environment: Mapping[str, str]
) -> tuple[str, str | None]:
    try:
        config = tomllib.loads(read_text(_codex_file("config.toml", environment)))
    except (OSError, ValueError):
        config = {}
    profile = config.get("profile")
    given: dict[str, str] = {}
    for option, value in _options(command):
        if option in ("-p", "--profile"):
            profile = value
        elif option in ("-c", "--config"):
            key, _, text = value.partition("=")
            given[key.strip()] = text.strip().strip("\"'")
    chosen = _table(_table(config, "profiles"), given.get("profile") or str(profile or ""))
    named = given.get("model_provider") or chosen.get("model_provider")
    name = str(named or config.get("model_provider") or _CODEX)
    if name == _CODEX:
        base = given.get("openai_base_url") or config.get("openai_base_url")
    else:
        own = _table(_table(config, "model_providers"), name)
        base = given.get(f"model_providers.{name}.base_url") or own.get("base_url")
    return name, str(base) if base else None


def _options(command: Sequence[str]) -> Iterator[tuple[str, str]]:
    for place, word in enumerate(command):
        option, equals, value = word.partition("=")
        if option.startswith("--") and equals:
            yield option, value
        elif word.startswith("-") and place + 1 < len(command):
            yield word, command[place + 1]


def _table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    within = table.get(name)
    return within if isinstance(within, dict) else {}


def _codex_file(name: str, environment: Mapping[str, str]) -> Path:
    return Path(environment.get("CODEX_HOME") or Path.home() / ".codex") / name


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
