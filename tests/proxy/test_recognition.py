"""Which requests are the conversation: those beside it go out as they came, and leave it alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from foredeck.embedded.format import ToolRequest
from foredeck_agents.proxy.recognition import Profile, is_compaction
from foredeck_bench.twin.script import ToolCall, call
from foredeck_bench.twin.server import ScriptedModel
from proxy.agents import APIS, LONG, TOOLS, agent, in_folder, prompts, proxied
from proxy.proxied import ProxiedAgent, RunningProxy

by_api = pytest.mark.parametrize("api", APIS)
SEARCH = {"name": "look_up", "description": "Ask the net", "parameters": {"type": "object"}}
INSTRUCTIONS = (
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed "
    "summary of the conversation so far, paying close attention to what was asked.",
    "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary.",
    "Provide a detailed prompt for continuing our conversation above.",
    "Create a new anchored summary from the conversation history in the tags above.",
    "Summarize the conversation so far. Name each file that was read or changed, what was decided "
    "and why, what is open, and the next step that was about to be taken.",
)


def _post(one: ProxiedAgent, body: Mapping[str, Any], session: str | None = "s1") -> None:
    headers = {"x-session-id": session} if session else {}
    assert httpx.post(one._url, json=body, headers=headers, timeout=60).is_success


def _beside(one: ProxiedAgent, *, tools: bool, system: bool, turns: int = 1) -> dict[str, Any]:
    """A request that the agent makes beside its own, under its session."""
    other = ProxiedAgent(one.format.api, "", [SEARCH], one.run_tool, streams=False)
    other.say("Search for: how snakes sleep")
    for number in range(1, turns):
        other.messages += [] if number % 2 else _exchange(other)
    body = other.body()
    if not tools:
        body["tools"] = one.body()["tools"]
    if system:
        text = "You perform searches on behalf of somebody else"
        body.update({n: text for n in ("system", "instructions") if n in body})
        if body.get("messages", [{}])[0].get("role") == "system":
            body["messages"][0]["content"] = text
    return body


def _exchange(other: ProxiedAgent) -> list[dict[str, Any]]:
    if other.wire.provider == "anthropic":
        use = {"type": "tool_use", "id": "b1", "name": "look_up", "input": {}}
        result = {"type": "tool_result", "tool_use_id": "b1", "content": "in a coil"}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    if other.format.api == "openai-completions":
        function = {"name": "look_up", "arguments": "{}"}
        use = {"id": "b1", "type": "function", "function": function}
        result = {"role": "tool", "tool_call_id": "b1", "content": "in a coil"}
        return [{"role": "assistant", "content": None, "tool_calls": [use]}, result]
    use = {"type": "function_call", "call_id": "b1", "name": "look_up", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "b1", "output": "in a coil"}
    return [{"role": "assistant", "items": [use]}, {"role": "tool", "items": [result]}]


@by_api
@pytest.mark.parametrize(
    ("tools", "system", "turns"),
    [(True, True, 1), (True, False, 1), (False, True, 1), (True, True, 3)],
    ids=["search", "other tools", "other system", "several turns"],
)
def test_a_request_beside_the_conversation_goes_out_as_it_came(
    tmp_path: Path, api: str, tools: bool, system: bool, turns: int
) -> None:
    def sent(with_side: bool) -> list[Any]:
        home, folder = tmp_path / f"home {with_side}", tmp_path / f"work {with_side}"
        reads = [ToolCall("read", {"path": f"{n}.py"}, f"c{n}") for n in range(3)]
        script = [step for read in reads for step in ([read, "Found."] if with_side else [read])]
        bodies: list[Any] = []
        with ScriptedModel([*script, "Done."]) as model, proxied(model, home, folder) as proxy:
            one = agent(proxy, api, folder)

            def run(use: ToolRequest) -> str:
                (folder / str(use.arguments["path"])).write_text(LONG + str(use.arguments))
                if with_side:
                    bodies.append(_beside(one, tools=tools, system=system, turns=turns))
                    _post(one, bodies[-1])
                return in_folder(folder)(use)

            one.run_tool = run
            one.run("Read all.")
            assert proxy.told == []
        raw = [recorded.request.raw for recorded in model.requests]
        assert [body for body in raw if body in bodies] == bodies
        return [p for p, body in zip(prompts(model), raw, strict=True) if body not in bodies]

    assert sent(True) == sent(False)


@by_api
def test_a_request_beside_the_conversation_comes_first_after_a_restart(
    tmp_path: Path, api: str
) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"
    with ScriptedModel([call("read", path="a.py"), "Found.", "Done."]) as model:
        with proxied(model, home, folder) as proxy:
            (folder / "a.py").write_text(LONG)
            one = agent(proxy, api, folder)
            one.say("Check it.")
            (use,) = one.format.tool_uses(one.ask())
        with proxied(model, home, folder) as proxy:
            again = agent(proxy, api, folder)
            again.messages = one.messages
            body = _beside(again, tools=True, system=True)
            _post(again, body)
            result = again.format.result(use, LONG, failed=False)
            is_block = again.wire.provider == "anthropic"
            again.messages.append({"role": "user", "content": [result]} if is_block else result)
            again.ask()
    assert model.requests[1].request.raw == body
    before, _, after = prompts(model)
    assert after[: len(before)] == before
    assert "activate" in model.requests[2].request.tools


@by_api
def test_a_request_beside_the_conversation_may_come_before_it(tmp_path: Path, api: str) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"
    script = ["Found.", call("read", path="a.py"), "Found.", "Done."]
    with ScriptedModel(script) as model, proxied(model, home, folder) as proxy:
        (folder / "a.py").write_text(LONG)
        one = agent(proxy, api, folder)
        _post(one, _beside(one, tools=True, system=True))
        one.say("Check it.")
        (use,) = one.format.tool_uses(one.ask())
        _post(one, _beside(one, tools=True, system=True))
        del use
        one.messages = one.messages[:1]
        one.ask()
    assert ["activate" in r.request.tools for r in model.requests][1:] == [True, False, True]


@by_api
def test_tools_and_model_may_change_where_the_list_goes_on(tmp_path: Path, api: str) -> None:
    folder = tmp_path / "work"
    with ScriptedModel(["One.", "Two."]) as model, proxied(model, tmp_path / "h", folder) as proxy:
        one = agent(proxy, api, folder)
        one.run("Go.")
        one._tools = [one.format.tool(SEARCH)]
        one.run("On.")
    assert [len(r.request.tools) for r in model.requests] == [4, 3]


@by_api
@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=lambda text: text[:20])
def test_a_request_for_a_summary_goes_out_whole_and_a_new_list_follows(
    tmp_path: Path, api: str, instruction: str
) -> None:
    folder = tmp_path / "work"
    script = [*[call("read", path="a.py")] * 3, "Fine.", "The summary.", "Done."]
    with ScriptedModel(script) as model, proxied(model, tmp_path / "h", folder) as proxy:
        (folder / "a.py").write_text(LONG)
        one = agent(proxy, api, folder)
        one.run("Check it.")
        one.say(instruction)
        whole = json.loads(json.dumps(one.body()))
        one.ask()
        one.messages = []
        one.run("This session is being continued: it was fine.")
    asked = model.requests[4].request
    assert asked.tools == model.requests[3].request.tools, "the cache finds what was sent"
    assert prompts(model)[4][:2] == prompts(model)[3][:2]
    # Two of the three reads went out as lines that point to the first.
    listed = one.wire.listed
    assert asked.raw[listed][-5:] == whole[listed][-5:]
    assert len(asked.raw[listed]) == len(whole[listed])
    assert "activate" in model.requests[5].request.tools
    assert proxy.told == []


def test_an_instruction_is_found_before_a_reminder(tmp_path: Path) -> None:
    """As Claude Code 2.1.332 puts one behind its instruction, which follows results."""
    folder, reminder = tmp_path / "work", {"role": "system", "content": "Keep the user informed."}
    script = [call("read", path="a.py"), "The summary."]
    with ScriptedModel(script) as model, proxied(model, tmp_path / "h", folder) as proxy:
        (folder / "a.py").write_text(LONG)
        one = agent(proxy, "anthropic-messages", folder)
        one.say("Check it.")
        (use,) = one.format.tool_uses(one.ask())
        result = one.format.result(use, LONG, failed=False)
        text = {"type": "text", "text": INSTRUCTIONS[0]}
        one.messages += [{"role": "user", "content": [result, text]}, reminder]
        one.ask()
    asked = model.requests[1].request.raw
    assert asked["messages"] == one.messages[:-1]
    assert len(asked["tools"]) > len(TOOLS), "the cache finds what was sent"


COMPACTS: list[tuple[dict[str, Any], dict[str, str], str]] = [
    ({"compaction": {"type": "summarize"}}, {}, ""),
    ({"input": [{"type": "message"}, {"type": "compaction_trigger"}]}, {}, ""),
    ({}, {"x-openai-subagent": "compact"}, ""),
    ({}, {"x-codex-turn-metadata": '{"request_kind": "compaction"}'}, ""),
    ({}, {}, "You are a helpful AI assistant tasked with summarizing conversations."),
    ({}, {}, "You are a context summarization agent."),
]


@pytest.mark.parametrize(("body", "headers", "system"), COMPACTS)
def test_what_each_client_marks_as_a_compaction(
    body: dict[str, Any], headers: dict[str, str], system: str
) -> None:
    assert is_compaction(body, headers, system, "")
    assert not is_compaction(
        {"input": [{"type": "message"}], "context_management": {"edits": []}},
        {"x-openai-subagent": "review", "x-codex-turn-metadata": '{"request_kind": "turn"}'},
        "You are a coding agent. Write a summary of the conversation when you are asked to.",
        "Summarize the session in notes.md.",
    )


def _varying(number: int) -> str:
    return f"You are careful and write tests. It is 12:00:0{number}, build deadbee{number}f."


@by_api
def test_a_system_text_that_varies_begins_no_conversation(tmp_path: Path, api: str) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"
    with ScriptedModel(["Yes."] * 5) as model:
        for first in (0, 2):
            with proxied(model, home, folder) as proxy:
                for number in (first, first + 1):
                    _ask_with(proxy, api, folder, _varying(number))
                if first:
                    _ask_with(proxy, api, folder, "A poet with other rules, who answers in rhymes")
                    named = [s.session for s in proxy.proxy._conversations.states.values()]
    assert len(set(named)) == 2
    assert len({p.name for p in home.rglob("*") if p.name.startswith("proxy-")}) <= 2


def _ask_with(proxy: RunningProxy, api: str, folder: Path, system: str) -> None:
    one = agent(proxy, api, folder, session=None, streams=False)
    one.say("Hello.")
    _post(one, json.loads(json.dumps(one.body()).replace("Be careful.", system)), session=None)


def test_a_list_after_a_compaction_may_have_another_system_text() -> None:
    profile, tools = Profile(), frozenset({"read", "write"})
    assert profile.takes("a", frozenset({"one", "two"}), tools)
    for _ in range(5):
        assert profile.takes("a", frozenset({"one", "two"}), tools)
    assert not profile.takes("b", frozenset({"three"}), tools)
    profile.compacted = True
    assert profile.takes("b", frozenset({"three"}), tools)
    assert profile.takes("a", frozenset({"three"}), frozenset({"other"}))
