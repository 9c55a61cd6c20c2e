"""The agents of `scripts/setup agents`, with and without the proxy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck_bench.scripted import ToolCall, call
from foredeck_bench.twin.steps import Step

CHECKOUT = Path(__file__).resolve().parents[3]
NODE_MODULES = CHECKOUT / ".cache" / "agents" / "node_modules"
KEY = "sk-not-a-key"
_CLAUDE = "anthropic/claude-sonnet-4-5"
_QUIET = {"snapshot": False, "autoupdate": False, "share": "disabled", "lsp": False}
"""What opencode does beside its work."""


Settings = tuple[Sequence[str], Mapping[str, str]]


@dataclass(frozen=True)
class Client:
    """An agent from npm.

    `asked`: its arguments for what the user says; `settings`: arguments and variables with its
    provider's address; the others: calls of its tools.
    """

    name: str
    program: Path
    provider: str
    asked: Callable[[str, bool], Sequence[str]]
    settings: Callable[[str | None, int | None], Settings]
    read: Callable[[Path], ToolCall]
    run: Callable[[str], ToolCall]
    edit: Callable[[Path, str, str], ToolCall]
    subagent: Callable[[str], Sequence[Step]]
    search: Callable[[str], ToolCall] | None = None
    """None where its provider searches."""
    compact: str = ""
    """What its user says to compact; may be empty."""

    @property
    def missing(self) -> str:
        """Why the agent cannot be run, if so."""
        return (
            "" if self.program.exists() else f"{self.name} is not installed: scripts/setup agents"
        )

    def address(self, url: str) -> str:
        return url if self.provider == "anthropic" else f"{url}/v1"


def _claude_asked(text: str, goes_on: bool) -> Sequence[str]:
    allowed = ("--allowedTools", "Read,Edit,Bash,WebSearch,Task,Agent")
    return ("-p", text, *(("--continue",) if goes_on else ()), *allowed)


def _codex_asked(text: str, goes_on: bool) -> Sequence[str]:
    options = ("-m", "gpt-5.1", "--dangerously-bypass-approvals-and-sandbox")
    return ("exec", *options, *(("resume", "--last") if goes_on else ()), text)


def _opencode_asked(text: str, goes_on: bool) -> Sequence[str]:
    return ("run", *(("-c",) if goes_on else ()), "-m", _CLAUDE, text)


def _claude_settings(base: str | None, _tokens: int | None) -> Settings:
    return (), {"ANTHROPIC_BASE_URL": base} if base else {}


def _codex_settings(base: str | None, tokens: int | None) -> Settings:
    address = ("-c", f'openai_base_url="{base}"') if base else ()
    limit = ("-c", f"model_auto_compact_token_limit={tokens}") if tokens else ()
    return (*address, *limit), {"CODEX_API_KEY": KEY}


def _opencode_settings(base: str | None, tokens: int | None) -> Settings:
    provider: dict[str, Any] = {"options": {"baseURL": f"{base}/v1"}} if base else {}
    if tokens:
        limit = {"context": tokens, "output": 4_000}
        provider["models"] = {_CLAUDE.partition("/")[2]: {"limit": limit}}
    config = {**_QUIET, "provider": {"anthropic": provider}}
    return (), {"OPENCODE_CONFIG_CONTENT": json.dumps(config)}


def _patch(file: Path, old: str, new: str) -> ToolCall:
    change = f"*** Begin Patch\n*** Update File: {file.name}\n@@\n-{old}\n+{new}\n*** End Patch"
    return call("exec_command", cmd=f"apply_patch <<'EOF'\n{change}\nEOF")


CLIENTS = (
    Client(
        "Claude Code",
        NODE_MODULES / "@anthropic-ai" / "claude-code-linux-x64" / "claude",
        "anthropic",
        _claude_asked,
        _claude_settings,
        lambda file: call("Read", file_path=str(file)),
        lambda command: call("Bash", command=command, description="run it"),
        lambda file, old, new: call("Edit", file_path=str(file), old_string=old, new_string=new),
        lambda prompt: [
            call("Agent", description="look", prompt=prompt, subagent_type="general-purpose")
        ],
        lambda query: call("WebSearch", query=query),
        "/compact",
    ),
    Client(
        "Codex",
        NODE_MODULES / "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        "openai",
        _codex_asked,
        _codex_settings,
        lambda file: call("exec_command", cmd=f"cat {file.name}", max_output_tokens=10_000),
        lambda command: call("exec_command", cmd=command),
        _patch,
        lambda prompt: (
            call("multi_agent_v1.spawn_agent", message=prompt),
            lambda request: call(
                "multi_agent_v1.wait_agent", targets=[request.find(r'"agent_id": ?"([^"]+)"')]
            ),
        ),
    ),
    Client(
        "opencode",
        NODE_MODULES / "opencode-linux-x64" / "bin" / "opencode",
        "anthropic",
        _opencode_asked,
        _opencode_settings,
        lambda file: call("read", filePath=str(file)),
        lambda command: call("bash", command=command, description="run it"),
        lambda file, old, new: call("edit", filePath=str(file), oldString=old, newString=new),
        lambda prompt: [call("task", description="look", prompt=prompt, subagent_type="general")],
    ),
)
