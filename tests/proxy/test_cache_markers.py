"""Anthropic's cache behind a client's three markers: what stays unchanged at a rebase is found."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from commands import Foredeck
from foredeck.embedded.anthropic_messages import MOST, markers_in
from foredeck.embedded.format import ToolRequest
from foredeck_bench.twin.script import call
from foredeck_bench.twin.server import ScriptedModel
from proxy.agents import TOOLS, proxied
from proxy.proxied import ProxiedAgent

MARK = {"cache_control": {"type": "ephemeral"}}
RUN = {"name": "bash", "description": "Run", "parameters": {"type": "object"}}


class MarkingAgent(ProxiedAgent):
    """Marks its system prompt twice and its newest message, as Claude Code does."""

    def body(self) -> dict[str, Any]:
        """See `ProxiedAgent`."""
        body: dict[str, Any] = json.loads(json.dumps(super().body()))
        texts = ("Rules. " * 4000, "Be careful.")
        body["system"] = [{"type": "text", "text": text, **MARK} for text in texts]
        message = body["messages"][-1]
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        message["content"][-1].update(MARK)
        return body


def test_a_rebase_finds_what_stands_before_it(tmp_path: Path, foredeck: Foredeck) -> None:
    chance, home, folder = random.Random(4), tmp_path / "home", tmp_path / "work"
    steps: list[Any] = []
    for number in range(1, 34):
        is_run = chance.random() < 0.6
        read = call("read", path=str(folder / f"f{chance.randrange(8)}.py"))
        steps.append(call("bash", command=f"make part{number}") if is_run else read)
        steps += ["Done."] if number % 30 == 0 else []

    def run(use: ToolRequest) -> str:
        if use.name == "read":
            return Path(str(use.arguments["path"])).read_text()
        rows = chance.choice([10, 40, 120, 400])
        return "\n".join(f"row {k} value {chance.randrange(99999)}" for k in range(rows))

    with ScriptedModel([*steps, "Done."]) as model, proxied(model, home, folder) as proxy:
        for number in range(8):
            lines = (f"def f{number}_{k}(v): return v*{k}" for k in range(300))
            (folder / f"f{number}.py").write_text("\n".join(lines))
        one = MarkingAgent("anthropic-messages", proxy.url, [*TOOLS, RUN], run, session="s1")
        one.run("Go on.")
        one.run("And on.")
    assert max([markers_in(r.request.raw["messages"]) + 2 for r in model.requests]) == MOST
    calls = [c for c in foredeck.json(home, "cost", "s1")["calls"] if c["reported"]]
    rebases = [c for c in calls if c["kind"] == "rebase" and c["foreseen"] > calls[0]["foreseen"]]
    assert rebases
    for each in rebases:
        assert each["foreseen"] == pytest.approx(each["reported"]["read"], rel=0.05)
