"""Runs the real `pi` in a scratch folder, on a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foredeck_bench.scripted.agent_dir import pi_environment
from foredeck_bench.scripted.processes import Process, kill, wait_for_end, with_environment

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

    def session_entries(self, position: int = -1) -> list[dict[str, Any]]:
        text = self.session_files()[position].read_text(encoding="utf-8")
        return [json.loads(line) for line in text.split("\n") if line]

    def leftovers(self, timeout_s: float = 10.0) -> list[Process]:
        """Processes still running when `timeout_s` has passed."""
        processes = with_environment(MARK, self.mark)
        survivors = wait_for_end([p.pid for p in processes], timeout_s)
        return [p for p in processes if p.pid in survivors]

    def end_leftovers(self) -> None:
        pids = [process.pid for process in with_environment(MARK, self.mark)]
        for pid in pids:
            kill(pid)
        if pids:
            wait_for_end(pids, 10.0)


@dataclass(frozen=True, slots=True)
class PrintRun:
    """What became of a run in print mode."""

    stdout: str
    stderr: str
    code: int


def pi_arguments(extensions: Sequence[Path], more: Sequence[str]) -> list[str]:
    """Arguments that load extensions, and `more`."""
    loaded = [part for path in extensions for part in ("-e", str(path))]
    return [*loaded, *more]


def run_print(
    install: PiInstall,
    workspace: PiWorkspace,
    *prompts: str,
    extensions: Sequence[Path] = (),
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 120.0,
) -> PrintRun:
    """Runs `pi -p` with these prompts. Raises TimeoutError, with the output so far."""
    command = [*install.command, *pi_arguments(extensions, arguments), "-p", *prompts]
    process = subprocess.Popen(
        command,
        cwd=workspace.repo,
        env=workspace.environment(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        workspace.end_leftovers()
        stdout, stderr = process.communicate()
        raise TimeoutError(
            f"pi -p did not end in {timeout_s:g} s\nstdout: {stdout}\nstderr: {stderr}"
        ) from None
    return PrintRun(stdout, stderr, process.returncode)
