"""Runs the real `pi` in a scratch folder on a scripted model, and ends what is left of a run."""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foredeck_bench.twin.script import Api, Json
from foredeck_lab.processes import Process, end_marked, marked


def running() -> list[Process]:
    listing = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,stat=,command="],
        capture_output=True,
        text=True,
        errors="replace",
        check=True,
    )
    processes = []
    for line in listing.stdout.split("\n"):
        fields = line.split(maxsplit=3)
        if len(fields) == 4 and not fields[2].startswith("Z"):
            processes.append(Process(int(fields[0]), fields[3], int(fields[1])))
    return processes


def descendants(pid: int) -> list[Process]:
    """Children of `pid`, their children and so on, parents before children."""
    processes = running()
    below: list[Process] = []
    parents = {pid}
    while parents:
        children = [p for p in processes if p.parent in parents]
        below += children
        parents = {p.pid for p in children}
    return below


def wait_for_end(pids: list[int], timeout_s: float) -> list[int]:
    """Waits for processes to end; returns those that have not."""
    deadline = time.monotonic() + timeout_s
    while True:
        alive = {p.pid for p in running()}
        survivors = [pid for pid in pids if pid in alive]
        if not survivors or time.monotonic() > deadline:
            return survivors
        time.sleep(0.05)


PROVIDER = "scripted"
MODEL = "scripted-1"
API_KEY = "loopback"

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


VERSIONS = ("1.6.0", "1.5.2")
"""Supported versions, newest first."""
NEWEST = "newest"
MARK = "FOREDECK_SCRATCH_RUN"
PATIENT = {
    "FOREDECK_DEADLINE_MS": "30000",
    "FOREDECK_TEST_CONSTANTS": "1",
    "FOREDECK_PREPARE_MS": "10000",
    "FOREDECK_OPENING_MS": "10000",
    "FOREDECK_SQLITE__BUSY_TIMEOUT_MS": "10000",
}
"""Independent of how busy a machine is."""

_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "TERM", "NODE_COMPILE_CACHE")


@dataclass(frozen=True, slots=True)
class PiInstall:
    """A Pi's version, and the command in front of its arguments."""

    version: str
    command: tuple[str, ...]


def checkout_pi(checkout: Path, version: str) -> PiInstall | None:
    """A checkout's Pi of this version, if any."""
    node = checkout / "node_modules" / ".bin" / "node"
    root = checkout if version == VERSIONS[0] else checkout / ".cache" / f"pi-{version}"
    package = root / "node_modules" / "@earendil-works" / "pi-coding-agent"
    manifest = package / "package.json"
    if not node.exists() or not manifest.exists():
        return None
    described = json.loads(manifest.read_text(encoding="utf-8"))
    if version not in (NEWEST, described["version"]):
        return None
    return PiInstall(described["version"], (str(node), str(package / described["bin"]["pi"])))


@dataclass(slots=True)
class PiWorkspace:
    """A scratch folder: a repository, Pi's configuration, foredeck's state.

    A mark in the environment finds processes that outlive their run.
    """

    root: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        for folder in (self.repo, self.home, self.foredeck_home):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def repo(self) -> Path:
        """The folder that Pi works in."""
        return self.root / "repo"

    @property
    def home(self) -> Path:
        """HOME of the processes started here."""
        return self.root / "home"

    @property
    def agent_dir(self) -> Path:
        """Pi's configuration and sessions."""
        return self.root / "agent"

    @property
    def foredeck_home(self) -> Path:
        """foredeck's state."""
        return self.root / "foredeck"

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        variables = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        return {
            **variables,
            "HOME": str(self.home),
            "FOREDECK_HOME": str(self.foredeck_home),
            MARK: self.mark,
            **pi_environment(self.agent_dir),
            **(extra or {}),
        }

    def session_files(self) -> list[Path]:
        return sorted((self.agent_dir / "sessions").rglob("*.jsonl"), key=lambda path: path.name)

    def session_entries(self) -> list[dict[str, Any]]:
        text = self.session_files()[-1].read_text(encoding="utf-8")
        return [json.loads(line) for line in text.split("\n") if line]

    def leftovers(self, timeout_s: float = 10.0) -> list[Process]:
        """Processes still running when `timeout_s` has passed."""
        processes = marked(MARK, self.mark)
        survivors = wait_for_end([p.pid for p in processes], timeout_s)
        return [p for p in processes if p.pid in survivors]

    def end_leftovers(self) -> None:
        end_marked(MARK, self.mark)


def pi_arguments(extensions: Sequence[Path], more: Sequence[str]) -> list[str]:
    """Arguments that load extensions, and `more`."""
    loaded = [part for path in extensions for part in ("-e", str(path))]
    return [*loaded, *more]
