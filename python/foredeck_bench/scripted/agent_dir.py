"""A configuration folder for Pi with the scripted model alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from foredeck_bench.twin.records import ModelRecord
from foredeck_bench.twin.request import Api

PROVIDER = "scripted"
MODEL = "scripted-1"
API_KEY = "loopback"

Json = dict[str, Any]

_PRICES = {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}
"""Dollars per million tokens."""

_EFFORTS = {name: name for name in ("low", "medium", "high", "xhigh", "max")}
_ALWAYS_THINKS = {"off": None, "minimal": None, **_EFFORTS}

_FLAGS: dict[Api, Json] = {
    # `claude-opus-5-5` of pi-ai 1.6.0; threads are Pi's default at Anthropic's own address.
    "anthropic-messages": {
        "forceAdaptiveThinking": True,
        "supportsTemperature": False,
        "supportsMidConvoEffort": True,
        "supportsMidConvoSystemMessages": True,
        "supportsMidConvoToolChanges": True,
        "supportsStrictTools": True,
        "supportsMessageThreads": True,
    },
    # `gpt-6.2-sol` of pi-ai 1.6.0.
    "openai-responses": {
        "supportsStrictMode": True,
        "supportsOpenAIGrammarTools": True,
        "supportsAdditionalTools": True,
        "supportsToolSearch": True,
        "supportsMidConvoSystemMessages": True,
        "supportsExplicitPromptCacheMode": True,
        "supportsMidConvoEffort": True,
    },
}
"""`compat` of the newest models in Pi's records, by API."""

_LIVES: dict[Api, Json] = {"anthropic-messages": {"promptCache": {"short": 300, "long": 3600}}}
"""Cache lifetimes in Pi's records, in seconds."""

_PATHS: dict[Api, str] = {"anthropic-messages": "", "google-generative-ai": "/v1beta"}


def model_record(
    api: Api = "anthropic-messages",
    *,
    id: str = MODEL,
    window: int = 200_000,
    max_tokens: int = 4096,
    plain: bool = False,
    reasoning: bool = False,
    kept_s: int | None = None,
) -> Json:
    """Pi's record of the scripted model, with the newest flags of its API.

    `plain`: without flags; `kept_s`: the cache's lifetime in seconds, as a user may write it.
    """
    flags = {} if plain else _FLAGS.get(api, {})
    lives = _LIVES.get(api, {}) if kept_s is None else {"promptCache": {"short": kept_s}}
    return {
        "id": id,
        "name": "Scripted",
        "reasoning": reasoning or bool(flags),
        "input": ["text", "image"],
        "contextWindow": window,
        "maxTokens": max_tokens,
        "cost": _PRICES,
        **lives,
        **({"compat": flags, "thinkingLevelMap": _ALWAYS_THINKS} if flags else {}),
    }


def twin_record(api: Api, record: Json) -> ModelRecord:
    """The twin's record of such a model."""
    bound = api == "anthropic-messages" or "compat" in record
    return replace(ModelRecord.of_pi(api, record), bound=bound)


def write_agent_dir(
    directory: Path,
    url: str,
    *,
    api: Api = "anthropic-messages",
    settings: Json | None = None,
    record: Json | None = None,
    **model: Any,
) -> Path:
    """Makes Pi talk to the scripted model at `url`; returns `directory`, for `PI_CODING_AGENT_DIR`.

    `settings` is merged over quiet ones.
    """
    directory.mkdir(parents=True, exist_ok=True)
    base = f"{url}{_PATHS.get(api, '/v1')}"
    models = [record or model_record(api, **model)]
    provider = {"baseUrl": base, "api": api, "apiKey": API_KEY, "models": models}
    _write(directory / "models.json", {"providers": {PROVIDER: provider}})
    chosen = {"defaultModel": models[0]["id"], **(settings or {})}
    _write(directory / "settings.json", {**_QUIET_SETTINGS, **chosen})
    return directory


def pi_environment(agent_dir: Path) -> dict[str, str]:
    """Variables that point Pi at `agent_dir` and keep it off the network."""
    return {
        "PI_CODING_AGENT_DIR": str(agent_dir),
        "PI_OFFLINE": "1",
        "PI_SKIP_VERSION_CHECK": "1",
        "PI_TELEMETRY": "0",
    }


_QUIET_SETTINGS = {
    "defaultProvider": PROVIDER,
    "enableInstallTelemetry": False,
    "quietStartup": True,
    "cacheWarming": "off",
    "retry": {"enabled": True, "maxRetries": 3, "baseDelayMs": 50},
}


def _write(path: Path, value: Json) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
