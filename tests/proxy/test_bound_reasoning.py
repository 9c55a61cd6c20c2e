"""A provider that refuses signed reasoning behind a changed byte, as it does for new accounts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foredeck.embedded.format import ToolRequest
from foredeck_bench.twin.script import Thinking, call
from foredeck_bench.twin.server import ScriptedModel
from proxy.agents import LONG, TOOLS, in_folder, proxied
from proxy.proxied import ProxiedAgent

COMPACT = "Your task is to create a detailed summary of the conversation so far."


class ThinkingAgent(ProxiedAgent):
    """On a model whose reasoning is bound; `drops`: what does not hold is to be left out."""

    drops = False

    def body(self) -> dict[str, Any]:
        """See `ProxiedAgent`."""
        binding = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
        thinking = {"type": "adaptive", **(binding if self.drops else {})}
        return {**super().body(), "model": "claude-opus-5-5", "thinking": thinking}


def _agent(url: str, folder: Path) -> ThinkingAgent:
    run = in_folder(folder)
    return ThinkingAgent("anthropic-messages", url, TOOLS, run, session="s1", streams=False)


def _turn(number: int) -> list[Any]:
    return [
        [Thinking(f"Which of {number}? " * 20), call("read", path="a.py")],
        [Thinking(f"That is {number}. " * 20), call("read", path="b.py")],
        f"Turn {number} is done.",
    ]


def _thoughts(model: ScriptedModel, number: int) -> int:
    return json.dumps(model.requests[number].request.raw["messages"]).count('"signature"')


def test_no_rebase_sends_reasoning_behind_a_changed_byte(tmp_path: Path) -> None:
    folder, steps = tmp_path / "w", list[Any]()
    for number in range(3):
        for part in range(12):
            path = f"{number}-{part}.py"
            steps.append([Thinking(f"Now {path}. " * 30), call("read", path=path)])
        steps.append("Done.")
    home = tmp_path / "h"
    with ScriptedModel(steps) as model, proxied(model, home, folder, window=60_000) as proxy:

        def run(use: ToolRequest) -> str:
            (folder / str(use.arguments["path"])).write_text(f"# {use.arguments}\n{LONG}")
            return in_folder(folder)(use)

        one = _agent(proxy.url, folder)
        one.run_tool = run
        for number in range(3):
            one.run(f"Go on with {number}.")
    # What was there is summarised or folded, and the reasoning of the newest turn is still sent.
    assert "[foredeck] Turn" in json.dumps(model.requests[-1].request.raw["messages"])
    assert 0 < _thoughts(model, -1) < 36


@pytest.mark.parametrize("restarts", [False, True])
def test_a_conversation_that_began_without_foredeck_goes_on_with_it(
    tmp_path: Path, restarts: bool
) -> None:
    home, folder = tmp_path / "h", tmp_path / "w"
    folder.mkdir()
    for name in ("a.py", "b.py"):
        (folder / name).write_text(LONG)
    steps = [*_turn(0), *_turn(1), *_turn(2), *_turn(3)]
    with ScriptedModel(steps) as model:
        one = _agent(model.url, folder)
        one._url = f"{model.url}/v1/messages"
        one.run("First.")
        for turns in (["Second.", "Third."], ["Fourth."]) if restarts else (["2.", "3.", "4."],):
            with proxied(model, home, folder) as proxy:
                after = _agent(proxy.url, folder)
                after.messages = one.messages
                for text in turns:
                    after.run(text)
                assert proxy.told == []
    assert len(model.requests) == len(steps)
    # What was made with foredeck comes back.
    assert [_thoughts(model, n) for n in (2, 3, 4, 5, 6)] == [2, 0, 1, 2, 2]


def test_a_client_that_has_it_dropped_keeps_what_it_sends(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    for name in ("a.py", "b.py"):
        (folder / name).write_text(LONG)
    with ScriptedModel([*_turn(0), "Two."]) as model:
        one = _agent(model.url, folder)
        one.drops = True
        one._url = f"{model.url}/v1/messages"
        headers = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
        one._headers = headers
        one.run("First.")
        with proxied(model, tmp_path / "h", folder) as proxy:
            after = _agent(proxy.url, folder)
            after.drops, after._headers = True, {**headers, "x-session-id": "s1"}
            after.messages = one.messages
            after.run("Second.")
    assert _thoughts(model, 3) == 2


def test_a_request_for_a_summary_is_not_refused_for_its_reasoning(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    with (
        ScriptedModel([*_turn(0), "The summary."]) as model,
        proxied(model, tmp_path / "h", folder) as proxy,
    ):
        for name in ("a.py", "b.py"):
            (folder / name).write_text(LONG)
        one = _agent(proxy.url, folder)
        one.run("Go.")
        one.say(COMPACT)
        whole = json.loads(json.dumps(one.body()["messages"]))
        one.ask()
    sent = model.requests[3].request.raw["messages"]
    assert len(sent) == len(whole)
    # The second read went out as a line that points to the first.
    assert [sent[place] for place in (4, 6)] == [whole[place] for place in (4, 6)]
    assert sent[:4] == model.requests[2].request.raw["messages"][:4]
    assert _thoughts(model, 3) == 2
