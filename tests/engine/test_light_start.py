"""An engine's start imports nothing that only some sessions, and none at once, have a use for."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

LATER = (
    *("foredeck.accounting.stored", "foredeck.context.compacting", "foredeck.context.summary"),
    *("foredeck.engine.commands", "foredeck.engine.memory_commands", "foredeck.engine.observing"),
    *("foredeck_agents.histories", "foredeck.memory.extracting", "foredeck.memory.judging"),
    *("foredeck_agents.mcp_server", "foredeck.notes.graph", "foredeck.notes.layer"),
    *("foredeck.notes.markdown", "foredeck.observations", "foredeck.pruning"),
    *("foredeck_lab.replay", "foredeck.search", "foredeck.tasks.board", "foredeck.tasks.tools"),
    *("foredeck.timeline.blame", "foredeck.timeline.rewind_command", "foredeck_inspector"),
    *("foredeck.working", "foredeck.worklog", "foredeck_xtdb", "watchdog.observers"),
)
"""Modules and packages that load with their first job: a session, a command, a question."""

NOT_WITH_A_SESSION = (
    *("foredeck.context.compacting", "foredeck.engine.commands", "foredeck.memory.extracting"),
    *("foredeck.memory.judging", "foredeck.observations.keeping", "foredeck_lab.replay"),
    *("foredeck_inspector", "foredeck_xtdb", "genai_prices"),
)
"""Those that a new session in a folder without anything still does not need."""

CODE = """
import sys
from foredeck.config import load_config
import foredeck.rpc.server
from foredeck.engine.engine import Engine
from foredeck.hosts.protocol import SessionOpenParams
config = load_config(project=None, trusted=False, flags=()).config
engine = Engine(config)
started = sorted(sys.modules)
engine.open_session(SessionOpenParams(session="s", file=None, cwd=CWD, reason="new", parent=None))
opened = sorted(sys.modules)
engine.close()
import json
print(json.dumps([started, opened]))
"""


def _loaded(home: Path) -> tuple[list[str], list[str]]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FOREDECK_")}
    done = subprocess.run(
        [sys.executable, "-c", CODE.replace("CWD", repr(str(home)))],
        capture_output=True,
        text=True,
        check=True,
        env={**environment, "FOREDECK_HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")},
    )
    started, opened = json.loads(done.stdout)
    return started, opened


def _under(names: tuple[str, ...], loaded: list[str]) -> list[str]:
    return [m for m in loaded if any(m == name or m.startswith(f"{name}.") for name in names)]


def test_a_start_and_an_empty_session_load_only_what_they_need(tmp_path: Path) -> None:
    assert all(map(importlib.util.find_spec, (*LATER, *NOT_WITH_A_SESSION)))
    started, opened = _loaded(tmp_path)
    assert not _under(LATER, started)
    assert not _under(NOT_WITH_A_SESSION, opened)
    assert "foredeck.tasks.board" in opened  # what a session needs is there once it is open
