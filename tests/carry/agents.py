"""The real Pi, Claude Code, Codex and opencode in one folder with one home, on a scripted model."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from foredeck_bench.clients.__main__ import PROXY, environment
from foredeck_bench.clients.agents import CHECKOUT, CLIENTS, Client, Story, UserTurn
from foredeck_bench.scripted.pi_process import (
    MODEL,
    PATIENT,
    PROVIDER,
    VERSIONS,
    checkout_pi,
    model_record,
    pi_arguments,
    pi_environment,
    write_agent_dir,
)
from foredeck_bench.twin.script import Step, ToolCall, call
from foredeck_bench.twin.server import ScriptedModel
from pi_runs import twin_record
from processes import run_program

TURN_S = 300
Json = dict[str, Any]


@dataclass(frozen=True)
class Agent:
    """An agent as `foredeck carry --to` names it. `client`: None for Pi."""

    name: str
    client: Client | None

    @property
    def missing(self) -> str:
        """Why it cannot be run; empty where it can."""
        if self.client is not None:
            return self.client.missing
        return "" if checkout_pi(CHECKOUT, VERSIONS[0]) else "Pi is not installed: scripts/setup"

    def read(self, file: Path) -> ToolCall:
        """Its call that reads a file."""
        return call("read", path=str(file)) if self.client is None else self.client.read(file)

    def edit(self, file: Path, old: str, new: str) -> ToolCall:
        """Its call that changes a file."""
        if self.client is not None:
            return self.client.edit(file, old, new)
        return call("edit", path=str(file), edits=[{"oldText": old, "newText": new}])

    def run(self, command: str) -> ToolCall:
        """Its call that runs a command."""
        return call("bash", command=command) if self.client is None else self.client.run(command)


PI = Agent("pi", None)
AGENTS = (
    PI,
    *(Agent(name, c) for name, c in zip(("claude", "codex", "opencode"), CLIENTS, strict=True)),
)


@dataclass
class Bench:
    """A folder to work in, and the home of all that is run there."""

    folder: Path
    said: str = ""
    models: list[ScriptedModel] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", "."], cwd=self.folder, check=True)

    @property
    def environment(self) -> dict[str, str]:
        """Of an agent, and of foredeck."""
        return {**environment(self.folder), **pi_environment(self._pi), **PATIENT}

    @property
    def _pi(self) -> Path:
        return self.folder.parent / "pi"

    def foredeck(self, *arguments: str, code: int = 0) -> str:
        """What a command prints."""
        done = self._run([sys.executable, "-m", "foredeck.cli.main", *arguments], {})
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + (done.stderr if code else "")

    def turn(
        self,
        agent: Agent,
        text: str,
        steps: Sequence[Step],
        *,
        resumed: Json | None = None,
        proxied: bool = True,
    ) -> ScriptedModel:
        """A turn of the user's; `resumed`: what `foredeck carry --json` has printed."""
        story = Story()
        turn = len(self.models)
        named = [
            replace(step, id=f"call_{turn}_{n}") if isinstance(step, ToolCall) else step
            for n, step in enumerate(steps)
        ]
        story.begin(UserTurn(text, named))
        if agent.client is None:
            record = twin_record("anthropic-messages", model_record("anthropic-messages"))
            with ScriptedModel(story, record=record) as model:
                write_agent_dir(self._pi, model.url)
                self._pi_turn(text, resumed, proxied)
        else:
            with ScriptedModel(story) as model:
                self._client_turn(agent.client, model.url, text, resumed, proxied)
        self.models.append(model)
        return model

    def _pi_turn(self, text: str, resumed: Json | None, proxied: bool) -> None:
        install = checkout_pi(CHECKOUT, VERSIONS[0])
        session = ["--model", f"{PROVIDER}/{MODEL}"]
        session += [] if resumed is None else resumed["commands"][0][1:]
        loaded = [CHECKOUT] if proxied else []
        self._checked([*install.command, *pi_arguments(loaded, session), "-p", text], {})

    def _client_turn(
        self, client: Client, url: str, text: str, resumed: Json | None, proxied: bool
    ) -> None:
        base = client.address(url)
        arguments, variables = client.settings(None if proxied else base, None)
        asked = [*client.asked(text, False)]
        if resumed is not None:
            *before, last = resumed["commands"]
            for each in before:
                self._checked([str(client.program), *each[1:]], variables)
            if client.provider == "openai":
                asked = [*asked[:-1], *last[1:], text]
            else:
                asked = (
                    [*asked[:1], *last[1:], *asked[1:]] if last[1] == "-s" else [*last[1:], *asked]
                )
        command = [str(client.program), *arguments, *asked]
        if proxied:
            command = [*PROXY, "--upstream", base, "--", *command]
        self._checked(command, variables)

    def _checked(self, command: Sequence[str], variables: dict[str, str]) -> None:
        done = self._run(command, variables)
        self.said = done.stdout
        is_well = done.returncode == 0 and "foredeck:" not in done.stderr
        assert is_well, done.stdout + done.stderr

    def _run(
        self, command: Sequence[str], variables: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return run_program(
            *command,
            cwd=self.folder,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            timeout=TURN_S,
        )
