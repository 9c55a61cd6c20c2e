"""The real agents, on the scripted model: directly, and through the proxy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from foredeck_bench.scripted import ScriptedModel, ToolCall, call

CHECKOUT = Path(__file__).resolve().parents[2]
NODE_MODULES = CHECKOUT / ".cache" / "agents" / "node_modules"
FIRST, THEN = "Change what has to be changed", "Look at the others, too"
KEY = "sk-not-a-key"


OPENCODE = {"snapshot": False, "autoupdate": False, "share": "disabled", "lsp": False}
"""What it does beside its work."""


@dataclass(frozen=True)
class Client:
    """An agent from npm. `direct`: what it is started with on a model of which the URL is given."""

    name: str
    program: Path
    turns: Sequence[Sequence[str]]
    """Arguments for the first thing that the user says, and for what they say then."""
    api: str
    direct: Callable[[str], tuple[list[str], dict[str, str]]]
    read: Callable[[Path], ToolCall]
    run: Callable[[str], ToolCall]
    edit: Callable[[Path, str, str], ToolCall]

    @property
    def missing(self) -> str:
        """Why it cannot be run; empty where it can."""
        return (
            "" if self.program.exists() else f"{self.name} is not installed: scripts/setup agents"
        )


def _codex_direct(url: str) -> tuple[list[str], dict[str, str]]:
    provider = f'{{name="X",base_url="{url}/v1",env_key="OPENAI_API_KEY",wire_api="responses"}}'
    given = ["-c", f"model_providers.x={provider}", "-c", 'model_provider="x"']
    return given, {}


def _opencode_direct(url: str) -> tuple[list[str], dict[str, str]]:
    config = {**OPENCODE, "provider": {"anthropic": {"options": {"baseURL": f"{url}/v1"}}}}
    return [], {"OPENCODE_CONFIG_CONTENT": json.dumps(config)}


def _patch(file: Path, old: str, new: str) -> ToolCall:
    change = f"*** Begin Patch\n*** Update File: {file.name}\n@@\n-{old}\n+{new}\n*** End Patch"
    return call("exec_command", cmd=f"apply_patch <<'EOF'\n{change}\nEOF")


CLIENTS = (
    Client(
        "Claude Code",
        NODE_MODULES / "@anthropic-ai" / "claude-code-linux-x64" / "claude",
        (
            ("-p", FIRST, "--allowedTools", "Read,Edit,Bash"),
            ("-p", THEN, "--continue", "--allowedTools", "Read,Edit,Bash"),
        ),
        "anthropic-messages",
        lambda url: ([], {"ANTHROPIC_BASE_URL": url}),
        lambda file: call("Read", file_path=str(file)),
        lambda command: call("Bash", command=command, description="run it"),
        lambda file, old, new: call("Edit", file_path=str(file), old_string=old, new_string=new),
    ),
    Client(
        "Codex",
        NODE_MODULES / "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        (
            ("exec", "-m", "gpt-5.1", "--dangerously-bypass-approvals-and-sandbox", FIRST),
            (
                *("exec", "-m", "gpt-5.1", "--dangerously-bypass-approvals-and-sandbox"),
                *("resume", "--last", THEN),
            ),
        ),
        "openai-responses",
        _codex_direct,
        lambda file: call("exec_command", cmd=f"cat {file.name}", max_output_tokens=10_000),
        lambda command: call("exec_command", cmd=command),
        _patch,
    ),
    Client(
        "opencode",
        NODE_MODULES / "opencode-linux-x64" / "bin" / "opencode",
        (
            ("run", "-m", "anthropic/claude-sonnet-4-5", FIRST),
            ("run", "-c", "-m", "anthropic/claude-sonnet-4-5", THEN),
        ),
        "anthropic-messages",
        _opencode_direct,
        lambda file: call("read", filePath=str(file)),
        lambda command: call("bash", command=command, description="run it"),
        lambda file, old, new: call("edit", filePath=str(file), oldString=old, newString=new),
    ),
)


def run_client(
    client: Client, model: ScriptedModel, folder: Path, turn: int, *, proxied: bool
) -> subprocess.CompletedProcess[str]:
    """Run an agent for one turn of the user's, in a folder, with a home of its own beside it."""
    home = folder.parent / f"home of {folder.name}"
    home.mkdir(exist_ok=True)
    given, variables = client.direct(model.url)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "FOREDECK_HOME": str(home / "foredeck"),
        "ANTHROPIC_API_KEY": KEY,
        "OPENAI_API_KEY": KEY,
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "OPENCODE_CONFIG_CONTENT": json.dumps(OPENCODE),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
    }
    command = [str(client.program), *client.turns[turn]]
    if proxied:
        url = model.url if client.api == "anthropic-messages" else f"{model.url}/v1"
        proxy = [sys.executable, "-m", "foredeck.cli.main", "proxy", "--upstream", url]
        command = [*proxy, "--", *command]
    else:
        command = [command[0], *given, *command[1:]]
        environment |= variables
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
