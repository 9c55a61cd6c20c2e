"""The agents of `scripts/setup agents`, with and without the proxy, and their scripted work."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foredeck_bench.twin.script import ModelRequest, SealedSummary, Step, StepResult, ToolCall, call

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


SUBAGENT = "Look through the parts and tell what they do"
_SUMMARY = re.compile(
    r"detailed summary of the|CONTEXT CHECKPOINT COMPACTION|summari[sz]ation|anchored summary", re.I
)
_SEARCH = ("web_search",)
LINES = 250
"""Of a large result."""
PAUSE_S = 8
_COMPACTS_ABOVE = 16_000


@dataclass(frozen=True)
class UserTurn:
    """What the user says, and what the model does then. `direct`: without foredeck; `compacts`:
    above so many tokens."""

    text: str
    steps: Sequence[Step]
    direct: bool = False
    compacts: int | None = None


@dataclass
class Story:
    """The model of one session."""

    subagent: Sequence[Step] = ()
    pause: Step | None = None
    """The proxy restarts during this call."""
    restarts: threading.Event = field(default_factory=threading.Event)
    _steps: list[Step] = field(default_factory=list)
    _beside: list[Step] = field(default_factory=list)

    def begin(self, turn: UserTurn) -> None:
        """The user says something."""
        self._steps = list(turn.steps)
        self._beside = list(self.subagent)

    def __call__(self, request: ModelRequest) -> StepResult:
        if not request.tools:
            return (
                '{"title": "A title"}' if "title" in request.system.lower() else _summary(request)
            )
        if request.tools == _SEARCH:
            return "Snakes sleep in a coil."
        if is_summary(request):
            return _summary(request)
        steps = self._beside if SUBAGENT in _first(request) else self._steps
        step = steps.pop(0) if steps else "All is done."
        if step is self.pause:
            self.restarts.set()
        return step(request) if callable(step) else step


def is_summary(request: ModelRequest) -> bool:
    """Whether an agent asks for a summary, to compact."""
    if _is_triggered(request):
        return True
    newest = str(request.messages[-2:])[-4000:]
    return bool(_SUMMARY.search(request.system[:300]) or _SUMMARY.search(newest))


def _is_triggered(request: ModelRequest) -> bool:
    items = request.raw.get("input") or [{}]
    return isinstance(items, list) and items[-1].get("type") == "compaction_trigger"


def _summary(request: ModelRequest) -> StepResult:
    text = f"<summary>{len(request.messages)} messages about the parts.</summary>"
    return SealedSummary(text) if _is_triggered(request) else text


def _first(request: ModelRequest) -> str:
    user_messages = (m for m in request.messages if m.get("role") == "user")
    return str(next(user_messages, ""))


Played = tuple[Sequence[UserTurn], Story]
Scene = Callable[[Client, Path], Played]


def _work(client: Client, folder: Path, calls: int, lines: int, first: int = 0) -> list[Step]:
    """Reads, commands and edits, with results of so many lines."""
    steps: list[Step] = []
    for number in range(first, first + calls):
        file = folder / f"part_{number}.py"
        steps_of = (f"def step_{number}_{n}(value):\n    return {n}\n" for n in range(lines // 2))
        file.write_text(f"LIMIT_{number} = {number}\n{''.join(steps_of)}")
        match number % 4:
            case 0:
                steps.append(client.read(file))
            case 1:
                steps.append(client.run(f"head -n {lines} {file.name}"))
            case 2:
                steps.append(client.run(f"grep -c NOTHING {file.name}; exit 3"))
            case _:
                # An agent edits only what it has read.
                limit = f"LIMIT_{number - 3} = "
                edited = folder / f"part_{number - 3}.py"
                steps.append(client.edit(edited, f"{limit}{number - 3}", f"{limit}-1"))
    return steps


def work(calls: int, lines: int, *, first: bool = False, then: bool = False) -> Scene:
    """A session of two turns, perhaps one of them without foredeck."""

    def scene(client: Client, folder: Path) -> Played:
        steps, half = _work(client, folder, calls, lines), calls // 2
        one = UserTurn("Look at the parts", [*steps[:half], "The first half is done."], first)
        other = UserTurn("Go on with the others", [*steps[half:], "All is done."], then)
        return (one, other), Story()

    return scene


def in_one_turn(client: Client, folder: Path) -> Played:
    """A session in which the user speaks once."""
    return (UserTurn("Look at the parts", [*_work(client, folder, 120, LINES), "Done."]),), Story()


def searching(client: Client, folder: Path) -> Played:
    """Searches between calls, for which Claude Code asks another model."""
    steps = _work(client, folder, 8, LINES)
    if client.search is not None:
        steps[3:3] = steps[6:6] = [client.search("how snakes sleep")]
    return (UserTurn("Do it", [*steps, "Done."]),), Story()


def compacting(client: Client, folder: Path) -> Played:
    """The agent compacts after work, then works on."""
    before, after = _work(client, folder, 12, LINES), _work(client, folder, 8, LINES, 12)
    first = UserTurn("Do it", [*before, "Done."])
    if client.compact:
        return (first, UserTurn(client.compact, ()), UserTurn("Go on", [*after, "Bye."])), Story()
    return (first, UserTurn("Go on", [*after, "Bye."], compacts=_COMPACTS_ABOVE)), Story()


def delegating(client: Client, folder: Path) -> Played:
    """A subagent works between two calls."""
    steps, beside = _work(client, folder, 8, LINES), _work(client, folder, 8, LINES, 8)
    steps[4:4] = client.subagent(SUBAGENT)
    return (UserTurn("Do it", [*steps, "Done."]),), Story([*beside, "They return numbers."])


def restarting(client: Client, folder: Path) -> Played:
    """The proxy restarts while the agent's command runs."""
    steps, pause = _work(client, folder, 16, LINES), client.run(f"sleep {PAUSE_S}")
    steps.insert(8, pause)
    return (UserTurn("Do it", [*steps, "Done."]),), Story(pause=pause)


SCENES: Mapping[str, Scene] = {
    "small-40": work(40, 10),
    "large-40": work(40, LINES),
    "small-120": work(120, 10),
    "large-120": work(120, LINES),
    "turn-120": in_one_turn,
    "search": searching,
    "compaction": compacting,
    "subagent": delegating,
    "resume-with": work(40, LINES, first=True),
    "resume-without": work(40, LINES, then=True),
    "restart": restarting,
}
"""What an agent can be run through; resumed ones change sides within a session."""
