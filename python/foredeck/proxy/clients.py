"""How a coding agent is given the proxy's address for one run, without touching its files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from foredeck.proxy.app import TOKEN_HEADER, UPSTREAMS

_TOKEN_VARIABLE = "FOREDECK_PROXY_TOKEN"
_BASES = {
    "anthropic": ("ANTHROPIC_BASE_URL",),
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
}
"""Variables in which agents look for their provider's address."""


@dataclass(frozen=True, slots=True)
class AgentRun:
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
