"""`foredeck proxy` as a process: what it starts, prints and leaves behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from commands import Foredeck
from foredeck_agents.proxy.agents import run_through, upstreams
from foredeck_bench.twin.script import Text, call
from foredeck_bench.twin.server import ScriptedModel
from processes import run_program
from proxy.agents import LONG, TOOLS, in_folder, prompts
from proxy.proxied import ProxiedAgent

FOREDECK = [sys.executable, "-m", "foredeck.cli.main", "proxy"]
SHOW = (
    "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if 'BASE' in k}));"
    "raise SystemExit(7)"
)


def _environment(home: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if "BASE" not in k}
    return {**kept, "FOREDECK_HOME": str(home)}


def test_a_command_gets_the_addresses_and_gives_its_exit_code(tmp_path: Path) -> None:
    done = run_program(
        *FOREDECK,
        "--",
        sys.executable,
        "-c",
        SHOW,
        env=_environment(tmp_path / "home"),
        cwd=tmp_path,
    )
    assert done.returncode == 7
    assert "came through" in done.stderr
    given = json.loads(done.stdout)
    assert set(given) == {"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE"}
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{43}/anthropic", given["ANTHROPIC_BASE_URL"])
    done = run_program(*FOREDECK, "--", "no-such-agent", env=_environment(tmp_path / "home"))
    assert done.returncode == 127
    assert done.stderr == "foredeck: no-such-agent was not found: is it installed, and in PATH?\n"


@pytest.mark.parametrize("address", ["example.org", "ftp://example.org", "http://", "http://["])
def test_an_upstream_that_is_no_address_is_refused_at_once(
    address: str, foredeck: Foredeck
) -> None:
    assert "argument --upstream" in foredeck(
        "proxy", "--upstream", address, "--", "no-such-agent", code=2
    )


class _Served:
    """A proxy process without a command."""

    def __init__(self, model: ScriptedModel, home: Path, folder: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*FOREDECK, "--upstream", model.url, *arguments],
            env=_environment(home),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        self.url = line.strip().removeprefix("ANTHROPIC_BASE_URL=").removesuffix("/anthropic")

    def agent(self, folder: Path) -> ProxiedAgent:
        tools = in_folder(folder)
        return ProxiedAgent("anthropic-messages", self.url, TOOLS, tools, session="killed")


def test_a_proxy_that_is_killed_goes_on_with_the_same_bytes(tmp_path: Path) -> None:
    script: list[Any] = [
        call("read", path="a.py"),
        [Text("Again."), call("activate", id="a.py")],
        call("read", path="a.py"),
        "Done.",
    ]
    home, folder = tmp_path / "home", tmp_path / "work"
    folder.mkdir()
    (folder / "a.py").write_text(LONG)
    with ScriptedModel(script) as model:
        first = _Served(model, home, folder)
        one = first.agent(folder)
        one.say("Check it.")
        messages: list[Any] = []
        for _ in range(2):
            (use,) = one.format.tool_uses(one.ask())
            result = one.format.result(use, in_folder(folder)(use), failed=False)
            one.messages.append({"role": "user", "content": [result]})
        messages = one.messages
        first.process.kill()
        first.process.wait()
        second = _Served(model, home, folder)
        again = second.agent(folder)
        again.messages = messages
        again.ask()
        status = httpx.get(f"{second.url}/").text
        second.process.send_signal(signal.SIGTERM)
        _, said = second.process.communicate(timeout=30)
    assert not model.violations
    assert said == ""
    before, after = prompts(model)[2:]
    assert json.dumps(after).startswith(json.dumps(before)[:-1])
    assert "killed  anthropic-messages: 1 requests with foredeck, 0 without" in status
    assert str(home) in status


def test_private_keeps_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with ScriptedModel(["Done."]) as model:
        served = _Served(model, home, tmp_path, "--private", "--no-tools")
        served.agent(tmp_path).run("A secret.")
        assert "nothing is kept" in httpx.get(f"{served.url}/").text
        served.process.terminate()
        served.process.wait(30)
    assert not home.exists()
    assert model.requests[0].request.tools == ("read", "write")


def test_agents_are_given_the_address_without_the_token_where_others_could_read_it(
    tmp_path: Path,
) -> None:
    environment = {"HOME": str(tmp_path), "CODEX_HOME": str(tmp_path), "OPENAI_API_KEY": "sk"}
    run = run_through(["/bin/codex", "exec", "x"], 1234, "the-token", environment)
    assert run.command[-2:] == ["exec", "x"]
    assert "the-token" not in " ".join(run.command)
    assert run.environment["OPENAI_PROJECT"] == "the-token"
    # Who has not logged in has a key in the environment.
    assert run.environment["CODEX_API_KEY"] == "sk"
    (tmp_path / "auth.json").write_text("{}")
    run = run_through(["codex"], 1234, "the-token", environment)
    assert "CODEX_API_KEY" not in run.environment

    config = {"OPENCODE_CONFIG_CONTENT": '{"theme": "x", "provider": {"openai": {"name": "n"}}}'}
    run = run_through(["opencode"], 1234, "t", config)
    made = json.loads(run.environment["OPENCODE_CONFIG_CONTENT"])
    assert made["theme"] == "x"
    assert made["provider"]["openai"] == {
        "name": "n",
        "options": {"baseURL": "http://127.0.0.1:1234/t/openai"},
    }
    assert made["provider"]["anthropic"]["options"]["baseURL"].endswith("/t/anthropic/v1")


def test_requests_go_where_the_agent_would_have_sent_them() -> None:
    own = {"ANTHROPIC_BASE_URL": "http://gateway"}
    assert upstreams(None, own) == {
        "anthropic": "http://gateway",
        "openai": "https://api.openai.com/v1",
    }
    assert set(upstreams("http://mine", own).values()) == {"http://mine"}
