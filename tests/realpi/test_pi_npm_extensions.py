"""Beside extensions that people use: those from npm work, and so does foredeck."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from foredeck.model.documents import ToolcallDocument
from foredeck_bench.scripted.pi_rpc import RpcPi
from foredeck_bench.twin.script import Step, call
from harness import Pi
from observed import answered, assert_stable, calls_of, results, stored

NAMES = ("pi-subagents", "pi-mcp-adapter", "pi-web-access", "pi-aliases")
COUNTED = "\n".join(f"number {n}" for n in range(300))
SUBAGENTS_TOOLS = "contact_supervisor"
"""Only the requests of a subagent declare this tool."""


@pytest.fixture
def others(checkout: Path) -> list[Path]:
    """The extensions, installed by `scripts/setup`."""
    folder = checkout / ".cache" / "extensions" / "node_modules"
    if not folder.is_dir():
        pytest.skip("other extensions are not installed: run scripts/setup")
    return [folder / name for name in NAMES]


def start(pi: Pi, others: list[Path], *, first: bool) -> RpcPi:
    """Pi with foredeck loaded before the other extensions or after them."""
    server = {"command": pi.install.command[0], "args": [str(counter())]}
    (pi.repo / ".mcp.json").write_text(json.dumps({"mcpServers": {"counter": server}}))
    share_compiled(pi.workspace.root)
    arguments = [] if first else [part for path in others for part in ("-e", str(path))]
    return pi.rpc(
        foredeck=True,
        extensions=others if first else [],
        arguments=arguments,
        environment={"TMPDIR": str(pi.workspace.root)},  # where pi-subagents keeps its state
    )


def share_compiled(folder: Path) -> None:
    """Thousands of lines of TypeScript are compiled by the first run, not by each of them."""
    shared = Path(tempfile.gettempdir()) / "jiti"
    shared.mkdir(exist_ok=True)
    (folder / "jiti").symlink_to(shared)


def counter() -> Path:
    """A server for the Model Context Protocol."""
    return Path(__file__).parent / "extensions" / "counter.mjs"


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_their_tools_and_ours_work_in_one_session(pi: Pi, others: list[Path], first: bool) -> None:
    (pi.repo / "a.txt").write_text("a line\n" * 60)
    count: dict[str, Any] = {"tool": "counter_numbers", "args": json.dumps({"to": 300})}
    delegate: dict[str, Any] = {"agent": "delegate", "task": "greet", "async": False}
    script: list[Step] = [
        call("read", path="a.txt"),
        call("mcp", **count),
        call("subagent", **delegate),
        "a greeting of the subagent",
        "done",
        call("mcp", **count),
        call("deactivate", id="a.txt"),
        "end",
    ]
    model = pi.serve(script)
    rpc = start(pi, others, first=first)
    rpc.prompt("work")
    rpc.prompt("more")
    assert model.steps_left == 0
    sent = [r for r in answered(model) if SUBAGENTS_TOOLS not in r.request.tools]
    assert len(sent) == 7
    assert_stable(sent)
    last = results(sent[-1])
    assert last[1].endswith(COUNTED)
    assert "a greeting of the subagent" in last[2]
    assert last[3] == f"Unchanged: the same as {last[1].split()[0]} above."
    with stored(pi) as store:
        assert len(calls_of(store)) == 7
        tools = [store.get(h.id, ToolcallDocument) for h in store.query("toolcall")]
        assert sorted(tool.tool for tool in tools if tool) == [
            "deactivate",
            "mcp",
            "mcp",
            "read",
            "subagent",
        ]
        assert [t.content for t in tools if t and t.tool == "mcp"] == [COUNTED] * 2
