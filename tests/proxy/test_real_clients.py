"""Claude Code, Codex and opencode, with and without foredeck, over thirty calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from foredeck_bench.scripted import ModelRequest, ScriptedModel, call
from foredeck_bench.twin.steps import StepResult
from proxy.agents import unmarked
from proxy.clients import CLIENTS, KEY, Client, run_client

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

CHANGED, READ = 8, 14


def _text(number: int) -> str:
    lines = (
        f"def step_{number}_{n}(value):\n    return value * {n} + {number}" for n in range(150)
    )
    return f"LIMIT_{number} = {number}\n\n\n" + "\n\n\n".join(lines) + "\n"


class _Story:
    """What the model does: it reads files, then changes some, and runs commands that fail."""

    def __init__(self, client: Client, folder: Path) -> None:
        self._steps: list[StepResult] = []
        for number in range(CHANGED + READ):
            (folder / f"part_{number}.py").write_text(_text(number))
        for number in range(CHANGED + READ):
            self._steps.append(client.read(folder / f"part_{number}.py"))
        self._steps.append("The first part is done.")
        for number in range(CHANGED):
            old, new = f"LIMIT_{number} = {number}", f"LIMIT_{number} = {number + 100}"
            failing = f"grep -n NOTHING part_{number}.py; echo failed {number}; exit 3"
            self._steps += [
                client.run(failing),
                client.edit(folder / f"part_{number}.py", old, new),
                client.run(f"wc -l part_{number}.py"),
            ]
        self._asked = False

    def __call__(self, request: ModelRequest) -> StepResult:
        if not request.tools:
            return '{"title": "A title"}'
        if self._steps:
            return self._steps.pop(0)
        if "activate" in request.tools and not self._asked:
            self._asked = True
            return call("activate", id=request.find(r"(@\d+) folded"))
        return "All is changed."


def _cost(model: ScriptedModel) -> float:
    """Input tokens at the price of fresh ones, as Anthropic bills them."""
    counts = [recorded.usage for recorded in model.requests if recorded.usage is not None]
    return sum(usage.uncached + 0.1 * usage.read + 1.25 * usage.written for usage in counts)


@pytest.fixture(params=CLIENTS, ids=[client.name for client in CLIENTS])
def client(request: pytest.FixtureRequest) -> Client:
    chosen: Client = request.param
    if chosen.missing:
        pytest.skip(chosen.missing)
    return chosen


def _run(client: Client, folder: Path, *, proxied: bool) -> tuple[ScriptedModel, str]:
    """Both turns, each with a process of the client's, and of the proxy's, of its own."""
    folder.mkdir()
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    shown = ""
    with ScriptedModel(_Story(client, folder)) as model:
        for turn in range(len(client.turns)):
            done = run_client(client, model, folder, turn, proxied=proxied)
            assert done.returncode == 0, done.stderr + done.stdout
            assert "foredeck:" not in done.stderr
            shown += done.stdout
    assert model.violations == [], model.violations
    return model, shown


def test_a_session_costs_less_and_the_agent_sees_nothing_of_it(
    client: Client, tmp_path: Path
) -> None:
    plain, _ = _run(client, tmp_path / "plain", proxied=False)
    model, shown = _run(client, tmp_path / "proxied", proxied=True)
    main = [recorded.request for recorded in model.requests if recorded.request.tools]
    assert len(main) >= 40
    assert "The first part is done." in shown
    assert "All is changed." in shown
    assert "activate" not in shown
    # The model gets what has folded, in full.
    last = main[-1]
    (answer,) = [text for id, text in last.results.items() if last.calls[id][0] == "activate"]
    assert "return value * 149 + " in answer
    for folder in ("plain", "proxied"):
        assert (tmp_path / folder / "part_7.py").read_text().startswith("LIMIT_7 = 107")
    assert _cost(model) < 0.95 * _cost(plain)

    home = {**os.environ, "FOREDECK_HOME": str(tmp_path / "home of proxied" / "foredeck")}
    command = [sys.executable, "-m", "foredeck.cli.main"]
    history = subprocess.run(
        [*command, "history", str(tmp_path / "proxied" / "part_7.py")],
        env=home,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert len([line for line in history.splitlines() if line[:1].isdigit()]) >= 2
    files = [f for f in (tmp_path / "home of proxied" / "foredeck").rglob("*") if f.is_file()]
    assert not [file for file in files if KEY.encode() in file.read_bytes()]


def _blocks(request: ModelRequest) -> list[Any]:
    """The messages; a text that is marked is a block, and one again when it is not."""
    texts = [(m, m["content"]) for m in unmarked(request.messages)]
    return [
        {**m, "content": [{"type": "text", "text": c}] if isinstance(c, str) else c}
        for m, c in texts
    ]


def test_a_search_and_a_compaction_of_claude_code_go_out_as_they_came(tmp_path: Path) -> None:
    client = CLIENTS[0]
    if client.missing:
        pytest.skip(client.missing)
    tools = ("--allowedTools", "Read,WebSearch")
    turns = (("-p", "Do it", *tools), ("-p", "/compact", "--continue"))
    turns = (*turns, ("-p", "Go on", "--continue", *tools))
    folder = tmp_path / "work"
    folder.mkdir()
    for number in range(4):
        (folder / f"part_{number}.py").write_text(_text(number))
    reads = [client.read(folder / f"part_{number}.py") for number in range(4)]
    search = call("WebSearch", query="how snakes sleep")
    steps: list[StepResult] = [
        reads[0],
        search,
        reads[1],
        search,
        reads[2],
        "Done.",
        reads[3],
        "Bye.",
    ]

    def story(request: ModelRequest) -> StepResult:
        if "Read" not in request.tools:
            return "In a coil." if request.tools else '{"title": "A title"}'
        if "detailed summary" in str(request.messages[-2:]):
            return "<summary>Three parts were read.</summary>"
        return steps.pop(0)

    with ScriptedModel(story) as model:
        for turn in range(len(turns)):
            done = run_client(replace(client, turns=turns), model, folder, turn, proxied=True)
            assert done.returncode == 0, done.stderr + done.stdout
    assert not model.violations
    sent = [r.request for r in model.requests if r.request.tools]
    searches = [r for r in sent if "Read" not in r.tools]
    (summary,) = [r for r in sent if "detailed summary" in str(r.messages[-2:])]
    main = [r for r in sent if r not in searches and r is not summary]
    assert len(searches) == 2
    assert not [r for r in (*searches, summary) if "activate" in r.tools]
    assert all("activate" in r.tools for r in main)
    assert "@3" not in json.dumps(summary.messages)
    for before, after in pairwise(main[:6]):
        old, new = _blocks(before), _blocks(after)
        assert new[: len(old)] == old
    assert len(main[6].messages) < len(main[5].messages)
