"""Claude Code, Codex and opencode, with and without foredeck."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from foredeck_bench.clients.__main__ import compared, run_scene
from foredeck_bench.clients.agents import CLIENTS, KEY, Client, Played, Story, UserTurn
from foredeck_bench.twin.script import ModelRequest, Step, StepResult, call
from processes import run_program

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

CHANGED, READ = 8, 14


def _text(number: int) -> str:
    lines = (
        f"def step_{number}_{n}(value):\n    return value * {n} + {number}" for n in range(150)
    )
    return f"LIMIT_{number} = {number}\n\n\n" + "\n\n\n".join(lines) + "\n"


def _asks(request: ModelRequest) -> StepResult:
    if "activate" not in request.tools:
        return "All is changed."
    return call("activate", id=request.find(r"(@\d+) folded"))


def _changing(client: Client, folder: Path) -> Played:
    """Files are read, some of them changed then, and commands fail."""
    for number in range(CHANGED + READ):
        (folder / f"part_{number}.py").write_text(_text(number))
    reads: list[Step] = [client.read(folder / f"part_{n}.py") for n in range(CHANGED + READ)]
    steps: list[Step] = []
    for number in range(CHANGED):
        old, new = f"LIMIT_{number} = {number}", f"LIMIT_{number} = {number + 100}"
        failing = f"grep -n NOTHING part_{number}.py; echo failed {number}; exit 3"
        steps += [
            client.run(failing),
            client.edit(folder / f"part_{number}.py", old, new),
            client.run(f"wc -l part_{number}.py"),
        ]
    first = UserTurn("Change what has to be changed", [*reads, "The first part is done."])
    return (first, UserTurn("Look at the others, too", [*steps, _asks, "All is changed."])), Story()


@pytest.fixture(params=CLIENTS, ids=[client.name for client in CLIENTS])
def client(request: pytest.FixtureRequest) -> Client:
    chosen: Client = request.param
    if chosen.missing:
        pytest.skip(chosen.missing)
    return chosen


def test_a_session_costs_less_and_the_agent_sees_nothing_of_it(
    client: Client, tmp_path: Path
) -> None:
    plain = run_scene(client, _changing, tmp_path / "plain", proxied=False)
    ours = run_scene(client, _changing, tmp_path / "proxied", proxied=True)
    assert plain.invalid == ours.invalid == 0
    assert len(ours.main) >= 40
    assert "The first part is done." in ours.shown
    assert "All is changed." in ours.shown
    assert "activate" not in ours.shown
    # The model gets what has folded, in full.
    last = ours.main[-1].request
    (answer,) = [text for id, text in last.results.items() if last.calls[id][0] == "activate"]
    assert "return value * 149 + " in answer
    for folder in ("plain", "proxied"):
        assert (tmp_path / folder / "part_7.py").read_text().startswith("LIMIT_7 = 107")
    assert ours.cost < 0.95 * plain.cost

    home = {**os.environ, "FOREDECK_HOME": str(tmp_path / "home of proxied" / "foredeck")}
    command = [sys.executable, "-m", "foredeck.cli.main"]
    history = run_program(
        *command, "history", str(tmp_path / "proxied" / "part_7.py"), env=home, check=True
    ).stdout
    assert len([line for line in history.splitlines() if line[:1].isdigit()]) >= 2
    files = [f for f in (tmp_path / "home of proxied" / "foredeck").rglob("*") if f.is_file()]
    assert not [file for file in files if KEY.encode() in file.read_bytes()]


@pytest.mark.parametrize(
    ("scene", "most", "changed"),
    [
        ("small-40", 1.02, 0),
        ("search", 1.02, 0),
        ("compaction", 1.02, 0),
        ("subagent", 1.02, 0),
        ("restart", 1.02, 0),
        # Tools stand before all else: where foredeck comes or goes, the prompt is written anew.
        ("resume-with", 1.25, 1),
        ("resume-without", 1.25, 1),
    ],
)
def test_a_short_session_is_hardly_dearer_and_its_prompts_go_on(
    client: Client, scene: str, most: float, changed: int
) -> None:
    plain, ours = compared(client, scene, ())
    assert plain.invalid == ours.invalid == 0
    assert len(ours.requests) == len(plain.requests)
    assert ours.changes == plain.changes + changed
    assert ours.cost <= most * plain.cost
