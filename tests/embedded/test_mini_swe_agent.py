"""mini-swe-agent, a coding agent, with foredeck in the place that it has for models of one's own.

Its package brings much that it does not need here: pip downloads it without that, once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from foredeck_bench.twin.server import ScriptedModel
from foredeck_bench.twin.steps import Script, ToolCall

PACKAGES = ("mini-swe-agent==2.4.6", "rich==15.0.0", "python-dotenv==1.2.4", "tenacity==9.2.1")
TEXT = "".join(f"line {number}: the quick brown fox\n" for number in range(120))


@pytest.fixture
def agent_package(checkout: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The package, importable. FOREDECK_TEST_MINI_SWE_AGENT names a folder that has it."""
    named = os.environ.get("FOREDECK_TEST_MINI_SWE_AGENT")
    folder = Path(named) if named else checkout / ".cache" / PACKAGES[0]
    if not (folder / "minisweagent").is_dir():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target"]
        got = subprocess.run([*command, str(folder), *PACKAGES], capture_output=True, text=True)
        if got.returncode:
            pytest.skip(f"mini-swe-agent cannot be had: {got.stderr[-200:]}")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("MSWEA_SILENT_STARTUP", "1")
    monkeypatch.setenv("MSWEA_GLOBAL_CONFIG_DIR", str(tmp_path / "config"))


def _agent(url: str, folder: Path, home: Path) -> Any:
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.environments.local import LocalEnvironment
    from minisweagent.models import get_model

    model = get_model(
        config={
            "model_class": "foredeck.embedded.mini_swe_agent.ForedeckModel",
            "managed_class": "openrouter",
            "model_name": "test/model",
            "cost_tracking": "ignore_errors",
            "home": home,
        }
    )
    model._model._api_url = f"{url}/v1/chat/completions"
    environment = LocalEnvironment(cwd=str(folder))
    texts = {"system_template": "You work with bash.", "instance_template": "{{task}}"}
    return DefaultAgent(model, environment, cost_limit=0.0, **texts)


@pytest.mark.usefixtures("agent_package")
def test_the_agent_sends_what_foredeck_makes_of_its_messages(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text(TEXT)
    script: Script = [
        ToolCall("bash", {"command": "cat a.txt"}),
        ToolCall("bash", {"command": "cat a.txt"}),
        ToolCall("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo Twice."}),
    ]
    with ScriptedModel(script) as model:
        agent = _agent(model.url, work, tmp_path / "home")
        ended = agent.run("Read a.txt twice.")
        agent.model.context.close()
    assert (ended["exit_status"], ended["submission"]) == ("Submitted", "Twice.\n")
    assert model.violations == []
    first, again = model.requests[-1].request.results.values()
    assert TEXT in first
    assert first.startswith("@")
    assert again.startswith("Unchanged: the same as @")
    # What the agent keeps of its conversation is whole.
    assert sum(TEXT in str(message.get("content")) for message in agent.messages) == 2
    sent = [recorded.request.messages for recorded in model.requests]
    assert all(after[: len(before)] == before for before, after in pairwise(sent))
    assert model.requests[0].request.tools == ("bash",)
