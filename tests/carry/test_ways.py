"""From each of the real agents to each other: the session goes on there, in its own resume."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from carry.agents import AGENTS, PI, Agent, Bench
from foredeck.prices import prices
from foredeck_bench.twin.script import ModelRequest

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

BEFORE = "LIMIT = 0\n" + "".join(f"def step_{n}(value):\n    return {n}\n" for n in range(60))


@pytest.mark.parametrize("origin", AGENTS, ids=[agent.name for agent in AGENTS])
def test_a_session_goes_on_in_each_other_agent(origin: Agent, tmp_path: Path) -> None:
    others = [agent for agent in AGENTS if agent is not origin]
    missing = next(filter(None, (agent.missing for agent in AGENTS)), "")
    if missing:
        pytest.skip(missing)
    bench = Bench(tmp_path / "work")
    file = bench.folder / "part.py"
    file.write_text(BEFORE)
    read_at = file.stat()
    bench.foredeck("memory", "add", "Speak of limits", "--category", "preference")
    steps = [origin.read(file), origin.run("echo one; exit 3"), "The first part is done."]
    bench.turn(origin, "Look at the part", steps)
    (listed,) = json.loads(bench.foredeck("sessions", "--json"))["sessions"]
    for other in others:
        # As it was read: the model there changes it without reading it again.
        file.write_text(BEFORE)
        os.utime(file, ns=(read_at.st_atime_ns, read_at.st_mtime_ns))
        _goes_on(bench, listed["session"], other, file)


def _goes_on(bench: Bench, session: str, agent: Agent, file: Path) -> None:
    kept = {path: path.read_bytes() for path in _files(bench)}
    priced = "openai/gpt-5.1" if agent.name == "codex" else "anthropic/claude-sonnet-4-5"
    to = ("carry", session, "--to", agent.name, "--model", priced, "--json")
    said = json.loads(bench.foredeck(*to, "--dry-run"))
    carried = json.loads(bench.foredeck(*to))
    assert (carried["tokens"], carried["dollars"]) == (said["tokens"], said["dollars"])
    assert {path: path.read_bytes() for path in kept} == kept
    assert [path for path in _files(bench) if path not in kept] == [Path(carried["file"])]
    changed = f"LIMIT = {7 + AGENTS.index(agent)}"
    steps = [
        agent.edit(file, "LIMIT = 0", changed),
        agent.run("grep -n LIMIT part.py"),
        "All is changed.",
    ]
    model = bench.turn(agent, "Change the limit", steps, resumed=carried)
    assert model.violations == []
    assert file.read_text() == BEFORE.replace("LIMIT = 0", changed)
    assert "All is changed." in bench.said
    answered = [each for each in model.requests if len(each.request.tools) > 1]
    requests = [each.request for each in answered]
    usage = answered[0].usage
    # The twin counts 4 characters a token; for a model that nobody has counted for 3.5 are said.
    scale = said["chars_per_token"] / 4
    tokens = (said["tokens"] + said["tokens_beside"]) * scale
    cost = prices(priced) or {}
    written, fresh = cost.get("cacheWrite") or cost["input"], cost["input"]
    dollars = (usage.written * written + usage.uncached * fresh) / 1e6
    assert tokens == pytest.approx(usage.prompt, rel=0.05)
    assert said["dollars"] * scale == pytest.approx(dollars, rel=0.05)
    first = _said(requests[0])
    assert first.count("Background, not the user's words") == 1
    assert "have just replaced" not in first
    opening = "The chat below is from"
    places = [first.index(text) for text in (opening, "Look at the part", "LIMIT = 0", "echo one")]
    places.append(first.index("The first part is done."))
    places.append(first.index("Change the limit"))
    assert places == sorted(places)
    sessions = json.loads(bench.foredeck("sessions", "--json"))["sessions"]
    (there,) = [row for row in sessions if row["session"] == carried["session"]]
    assert there["parent"] == session
    assert there["calls"] > len(requests)
    if agent is not PI:
        assert f"({there['harness']}, " in bench.foredeck("blame", file.name)


def test_a_recorded_session_is_folded_once_and_goes_on_behind_the_proxy(tmp_path: Path) -> None:
    agent = AGENTS[1]
    if agent.missing:
        pytest.skip(agent.missing)
    bench = Bench(tmp_path / "work")
    source = Path(__file__).parents[1] / "recordings" / "long.jsonl"
    where = ("--folder", str(bench.folder), "--json")
    carried = json.loads(bench.foredeck("carry", str(source), "--to", agent.name, *where))
    written = Path(carried["file"]).read_text()
    model = bench.turn(agent, "Go on", ["Yes."], resumed=carried)
    (row, _) = json.loads(bench.foredeck("sessions", "--json"))["sessions"]
    assert (row["session"], row["calls"]) == (carried["session"], 4)
    said = _said(next(each.request for each in model.requests if len(each.request.tools) > 1))
    for fold in ("folded: 4 calls", "4 calls, folded"):
        assert said.count(fold) == written.count(fold) > 0
    assert "have just replaced" not in said


def _said(request: ModelRequest) -> str:
    listed = request.raw.get("messages") or request.raw.get("input")
    return json.dumps(listed, ensure_ascii=False)


def _files(bench: Bench) -> list[Path]:
    """All that the agents keep of sessions, but for databases that they have open."""
    return [
        path
        for path in bench.folder.parent.rglob("*")
        if path.is_file() and (path.suffix == ".jsonl" or "carried" in path.parts)
    ]
