"""An agent through the proxy: what reaches the model, and what the agent sees of it."""

from __future__ import annotations

import json
import os
import weakref
from pathlib import Path
from typing import Any

import httpx
import pytest

from commands import Foredeck
from foredeck.config import Config
from foredeck.embedded.format import ToolRequest
from foredeck.store.place import open_store
from foredeck_agents.proxy import app, conversations
from foredeck_agents.proxy.conversations import ClientChat
from foredeck_agents.proxy.wires import harness_of
from foredeck_bench.twin.script import ModelRequest, StepResult, Text, Thinking, call
from foredeck_bench.twin.server import ScriptedModel
from proxy.agents import APIS, LONG, agent, at_work, goes_on, in_folder, prompts, proxied
from proxy.proxied import ProxiedAgent

by_api = pytest.mark.parametrize("api", APIS)
by_stream = pytest.mark.parametrize("streams", [True, False], ids=["stream", "whole"])


@by_api
@by_stream
def test_the_model_calls_activate_and_the_agent_does_not_see_it(
    tmp_path: Path, api: str, streams: bool
) -> None:
    script = [
        call("read", path="a.py"),
        [Text("I look again."), call("activate", id="a.py")],
        "It is fine.",
        "Goodbye.",
    ]
    with at_work(script, tmp_path, api, streams=streams) as (model, one):
        one.run("Check it.")
        one.run("Thanks.")
    said = json.dumps(one.messages)
    assert "activate" not in said
    assert "It is fine." in said
    sent = model.requests[2].request
    assert [name for name, _ in sent.calls.values()] == ["read", "activate"]
    # The next request has what the agent does not have, byte for byte.
    assert goes_on(model, 2, 3)
    assert [name for name, _ in model.requests[3].request.calls.values()] == ["read", "activate"]


@by_api
def test_a_refused_call_is_stored_as_a_failure_of_its_agents_session(
    tmp_path: Path, api: str
) -> None:
    script = [call("activate", id="@999"), "I see.", "Goodbye."]
    folder = tmp_path / "work"
    with ScriptedModel(script) as model, proxied(model, tmp_path / "home", folder) as proxy:
        one = agent(proxy, api, folder)
        one._headers["user-agent"] = "claude-cli/2.1.332 (external, cli)"
        one.run("Check it.")
        one.run("Thanks.")
    assert goes_on(model, 1, 2)
    store = open_store(Config(home=tmp_path / "home"))
    assert [head.fields["status"] for head in store.query("toolcall")] == ["fail"]
    assert [head.fields["harness"] for head in store.query("session")] == ["claude-code"]
    store.close()


@by_api
def test_what_others_change_is_said_before_the_next_request(tmp_path: Path, api: str) -> None:
    folder = tmp_path / "work"
    script = [call("read", path="a.py"), "I see.", "Goodbye."]
    with ScriptedModel(script) as model, proxied(model, tmp_path / "home", folder) as proxy:
        file = folder / "a.py"
        file.write_text(LONG)
        one = agent(proxy, api, folder)
        one.run("Check it.")
        file.write_text(LONG.upper())
        os.utime(file, (1, 1))  # settled
        one.run("Thanks.")
    notice = f"{file} changed on disk: the copy above is old."
    assert [notice in each.request.text for each in model.requests] == [False, False, True]


def test_an_agent_is_known_by_the_name_that_it_gives() -> None:
    named = {
        "codex_cli_rs/0.169.0 (Linux)": "codex",
        "opencode/1.18.33 ai-sdk/provider-utils": "opencode",
        "OpenAI/Python 2.1": "proxy",
        "": "proxy",
    }
    assert {name: harness_of({"user-agent": name}) for name in named} == named


@by_api
@by_stream
def test_usage_has_the_input_of_the_last_request_and_the_output_of_all(
    tmp_path: Path, api: str, streams: bool, foredeck: Foredeck
) -> None:
    script = [[Text("Hm."), call("activate", id="@1")], call("activate", id="@1"), "Done.", "Bye."]
    home, folder = tmp_path / "h", tmp_path / "w"
    with ScriptedModel(script) as model, proxied(model, home, folder) as proxy:
        one = agent(proxy, api, folder, streams=streams)
        one.run("Go.")
        one.run("Thanks.")
    counts = [recorded.usage for recorded in model.requests if recorded.usage is not None]
    told = one.format.usage(one.usages[0])
    assert (told.fresh, told.read) == (counts[2].uncached, counts[2].read)
    output = sum(usage.output for usage in counts[:3])
    names = ("output_tokens", "completion_tokens")
    assert [one.usages[0][name] for name in names if name in one.usages[0]] == [output]
    if "total_tokens" in one.usages[0]:
        assert one.usages[0]["total_tokens"] == told.fresh + told.read + output
    # All of it is in the store, once the answer is.
    calls = foredeck.json(home, "cost", "s1")["calls"]
    stored = [sum(each["reported"].values()) for each in calls if each["reported"]]
    assert stored == [c.uncached + c.read + c.written for c in counts[:3]]


@by_api
@by_stream
def test_a_model_that_only_calls_foredecks_tools_is_given_none_at_last(
    tmp_path: Path, api: str, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MOST_ROUNDS", 3)

    def endless(request: ModelRequest) -> StepResult:
        is_given = "activate" in request.tools
        return call("activate", id="@1") if is_given else call("read", path="a.py")

    script: list[Any] = [*[endless] * 4, "Done."]
    with at_work(script, tmp_path, api, streams=streams) as (model, one):
        one.run("Check it.")
    assert "Done." in json.dumps(one.messages)
    assert "activate" in model.requests[4].request.tools


@by_api
@by_stream
def test_a_model_that_calls_what_it_is_not_given_ends_in_an_answer(
    tmp_path: Path, api: str, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MOST_ROUNDS", 3)
    script = [[Text(f"Look {n}."), call("activate", id="@1")] for n in range(4)]
    folder = tmp_path / "work"
    with (
        ScriptedModel([*script, "Fine."]) as model,
        proxied(model, tmp_path / "h", folder) as proxy,
    ):
        one = agent(proxy, api, folder, streams=streams)
        one.run("Check it.")
        said = json.dumps(one.messages)
        one.run("Go on.")
    assert "Look 3." in said
    assert "gave no answer" in said
    assert "activate" not in said
    assert "Fine." in json.dumps(one.messages)
    assert proxy.told == ["A model called foredeck's tools 3 times without an answer."]


@by_api
def test_both_kinds_of_tools_in_one_answer(tmp_path: Path, api: str) -> None:
    script = [
        call("read", path="a.py"),
        [Text("Both."), call("activate", id="a.py"), call("read", path="b.py")],
        [Text("Again."), call("read", path="b.py")],
        "Done.",
    ]
    with at_work(script, tmp_path, api) as (model, one):
        one.run("Check it.")
    sent = model.requests[2].request
    assert [name for name, _ in sent.calls.values()] == ["read", "activate", "read"]
    assert list(sent.calls) == list(sent.results)
    assert goes_on(model, 2, 3)
    assert "activate" not in json.dumps(one.messages)


@by_api
def test_a_call_of_foredecks_alone_after_both_kinds_in_one_answer(tmp_path: Path, api: str) -> None:
    script = [
        [call("activate", id="a.py"), call("read", path="a.py")],
        [Text("Once more."), call("activate", id="a.py")],
        call("read", path="b.py"),
        "Done.",
    ]
    with at_work(script, tmp_path, api) as (model, one):
        one.run("Check it.")
    called = [name for name, _ in model.requests[3].request.calls.values()]
    assert called == ["activate", "read", "activate", "read"]
    assert goes_on(model, 2, 3)


@by_stream
def test_tools_that_are_declared_in_an_item_get_foredecks_beside_them(
    tmp_path: Path, streams: bool
) -> None:
    script = [
        [call("functions.read", path="a.py"), call("foredeck.activate", id="@1")],
        [Text("Again."), call("foredeck.activate", id="a.py")],
        "Done.",
        "Goodbye.",
    ]
    folder = tmp_path / "work"
    sent = []
    for restarts in (False, True):
        home = tmp_path / f"home {restarts}"
        with ScriptedModel(script) as model:
            with proxied(model, home, folder) as proxy:
                (folder / "a.py").write_text(LONG)
                one = agent(proxy, "openai-responses", folder, streams=streams, in_item="functions")
                one.run("Check it.")
                if not restarts:
                    one.run("Thanks.")
            if restarts:
                with proxied(model, home, folder) as proxy:
                    later = agent(
                        proxy, "openai-responses", folder, streams=streams, in_item="functions"
                    )
                    later.messages = one.messages
                    later.run("Thanks.")
        assert "activate" not in json.dumps(one.messages)
        assert model.requests[0].request.tools[:3] == (
            "functions.read",
            "functions.write",
            "foredeck.activate",
        )
        before, after = prompts(model)[2:]
        assert after[: len(before)] == before
        names = [name for name, _ in model.requests[3].request.calls.values()]
        assert names == ["functions.read", "foredeck.activate", "foredeck.activate"]
        sent.append(prompts(model))
    assert sent[0] == sent[1]


@by_api
def test_a_proxy_that_starts_again_sends_the_same_bytes(tmp_path: Path, api: str) -> None:
    script = [
        call("read", path="a.py"),
        [Text("Again."), call("activate", id="a.py")],
        call("read", path="a.py"),
        [call("pin", id="a.py"), call("read", path="b.py")],
        call("read", path="b.py"),
        "Done.",
    ]
    folder = tmp_path / "work"
    prompted = {}
    for restarts in (False, True):
        home = tmp_path / f"home {restarts}"
        folder.mkdir(exist_ok=True)
        (folder / "a.py").write_text(LONG)
        (folder / "b.py").write_text("b = 1\n")
        with ScriptedModel(script) as model:
            with proxied(model, home, folder) as proxy:
                one = agent(proxy, api, folder)
                one.say("Check it.")
                for _ in range(4):
                    _step(one, folder)
                if not restarts:
                    _step(one, folder)
            if restarts:
                with proxied(model, home, folder) as proxy:
                    again = agent(proxy, api, folder)
                    again.messages = one.messages
                    _step(again, folder)
            prompted[restarts] = prompts(model)
    assert json.dumps(prompted[True]) == json.dumps(prompted[False])


@by_api
def test_what_the_agent_changed_while_the_proxy_started_again_is_the_agents(
    tmp_path: Path, api: str, foredeck: Foredeck
) -> None:
    folder, home = tmp_path / "work", tmp_path / "home"
    changed = call("write", path="a.py", content=LONG.replace("value + 7\n", "value - 7\n"))
    with ScriptedModel([call("read", path="a.py"), changed, "Done."]) as model:
        with proxied(model, home, folder) as proxy:
            (folder / "a.py").write_text(LONG)
            one = agent(proxy, api, folder)
            one.say("Change it.")
            _step(one, folder)
            uses = one.format.tool_uses(one.ask())
        with proxied(model, home, folder) as proxy:
            again = agent(proxy, api, folder)
            again.messages = one.messages
            _run_tools(again, uses, folder)
            _step(again, folder)
    (line,) = (
        line
        for line in foredeck(home, "blame", folder / "a.py").splitlines()
        if "value - 7" in line
    )
    assert line.startswith("s1 call 2 write")


def _step(one: ProxiedAgent, folder: Path) -> None:
    """Ask once, and run what the model calls."""
    _run_tools(one, one.format.tool_uses(one.ask()), folder)


def _run_tools(one: ProxiedAgent, uses: list[ToolRequest], folder: Path) -> None:
    results = [one.format.result(u, in_folder(folder)(u), failed=False) for u in uses]
    if one.wire.provider == "anthropic" and results:
        one.messages.append({"role": "user", "content": results})
    else:
        one.messages += results


@by_api
def test_two_agents_at_once_do_not_mix(tmp_path: Path, api: str) -> None:
    folder = tmp_path / "work"
    script = [call("activate", id="@1"), "To one.", "To the other.", "Again to one."]
    with ScriptedModel(script) as model, proxied(model, tmp_path / "home", folder) as proxy:
        one, other = (agent(proxy, api, folder, session=name) for name in ("s1", "s2"))
        one.run("I am one.")
        other.run("I am the other.")
        one.run("One again.")
    texts = [recorded.request.text for recorded in model.requests]
    assert "the other" not in texts[3].lower()
    assert "I am one." not in texts[2]
    assert [name for name, _ in model.requests[3].request.calls.values()] == ["activate"]


@by_api
def test_a_list_that_its_client_has_rewound_or_compacted_is_a_branch(
    tmp_path: Path, api: str
) -> None:
    script = [
        call("read", path="a.py"),
        [Text("Again."), call("activate", id="a.py")],
        "It is fine.",
        "Yes.",
        "Other.",
        "From the summary.",
    ]
    with at_work(script, tmp_path, api) as (model, one):
        one.run("Check it.")
        before = len(one.messages)
        one.run("Is it?")
        del one.messages[before:]
        one.run("Something else.")
        one.messages = []
        one.run("Summary of all that: it was fine.")
    sent = prompts(model)
    assert sent[4][: len(sent[3]) - 1] == sent[3][:-1]
    assert [name for name, _ in model.requests[4].request.calls.values()] == ["read", "activate"]
    assert "Is it?" not in model.requests[4].request.text
    assert model.requests[5].request.calls == {}


@by_api
def test_a_client_that_goes_back_and_returns_gets_the_same_bytes(tmp_path: Path, api: str) -> None:
    script = [
        call("read", path="a.py"),
        [Text("Again."), call("activate", id="a.py")],
        "It is fine.",
        "It reads a file.",
        "It reads it twice.",
        "Goodbye.",
    ]
    with at_work(script, tmp_path, api) as (model, one):
        one.run("Check it.")
        whole = list(one.messages)
        for question in ("What is it doing?", "And now?"):
            one.messages = whole[:1]
            one.run(question)
        one.messages = whole
        one.run("Thanks.")
    assert goes_on(model, 2, 5)


@by_api
def test_another_request_of_the_session_parts_no_answer_from_its_calls(
    tmp_path: Path, api: str
) -> None:
    """As an agent asks beside its work what the user might say next."""
    folder = tmp_path / "work"
    script = [[call("activate", id="a.py"), call("read", path="a.py")], "You might say thanks."]
    with (
        ScriptedModel([*script, "It is fine.", "Yes."]) as model,
        proxied(model, tmp_path / "home", folder) as proxy,
    ):
        (folder / "a.py").write_text(LONG)
        one, beside = agent(proxy, api, folder), agent(proxy, api, folder)

        def read(request: ToolRequest) -> str:
            beside.messages = one.messages[:1]
            beside.run("What might be said next?")
            return in_folder(folder)(request)

        one.run_tool = read
        one.run("Check it.")
        one.run("Is it?")
    for recorded in model.requests[2:]:
        assert [name for name, _ in recorded.request.calls.values()] == ["activate", "read"]
    assert goes_on(model, 2, 3)


@by_api
def test_a_client_that_goes_back_before_a_call_of_foredecks_alone_keeps_its_words(
    tmp_path: Path, api: str
) -> None:
    folder = tmp_path / "work"
    script = [[Text("I look again."), call("activate", id="a.py")], "It is fine.", "Yes."]
    with ScriptedModel(script) as model, proxied(model, tmp_path / "home", folder) as proxy:
        one = agent(proxy, api, folder)
        one.run("Check it.")
        del one.messages[1:]
        one.run("Something else.")
    assert "Something else." in model.requests[2].request.text


@by_api
def test_what_has_been_idle_is_dropped_and_comes_back_with_the_same_bytes(
    tmp_path: Path, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = []

    class Watched(ClientChat):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            engines.append(weakref.ref(self._engine))

    monkeypatch.setattr(conversations, "ClientChat", Watched)
    monkeypatch.setattr(conversations, "MOST_OPEN", 2)
    folder = tmp_path / "work"
    first = [call("read", path="a.py"), [Text("Again."), call("activate", id="a.py")], "Fine."]
    script = [*first, *["Yes."] * 4, "Goodbye."]
    with ScriptedModel(script) as model, proxied(model, tmp_path / "home", folder) as proxy:
        (folder / "a.py").write_text(LONG)
        one = agent(proxy, api, folder, session="s0")
        one.run("Check it.")
        for number in range(1, 5):
            agent(proxy, api, folder, session=f"s{number}").run("Is it?")
            status = httpx.get(f"{proxy.url}/").text
            assert status.count("requests with foredeck") == min(number + 1, 2)
            assert sum(engine() is not None for engine in engines) <= 2
        assert "s0" not in status
        one.run("Thanks.")
    assert goes_on(model, 2, -1)


@by_api
def test_a_conversation_that_is_dropped_while_the_model_answers_goes_on(
    tmp_path: Path, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "MOST_OPEN", 1)
    folder = tmp_path / "work"

    def meanwhile(_request: ModelRequest) -> StepResult:
        agent(proxy, api, folder, session="s2").run("Is it?")
        return call("activate", id="a.py")

    script = [meanwhile, "Yes.", "Done.", "Goodbye."]
    with ScriptedModel(script) as model, proxied(model, tmp_path / "home", folder) as proxy:
        (folder / "a.py").write_text(LONG)
        one = agent(proxy, api, folder)
        one.run("Check it.")
        one.run("Thanks.")
    assert model.steps_left == 0
    assert [name for name, _ in model.requests[3].request.calls.values()] == ["activate"]
    assert goes_on(model, 2, 3)


@pytest.mark.parametrize("streams", [True, False], ids=["stream", "whole"])
def test_signed_reasoning_before_a_call_of_foredecks_own_goes_out_as_it_came(
    tmp_path: Path, streams: bool
) -> None:
    folder = tmp_path / "work"
    script = [
        [Thinking("Which?"), call("activate", id="@1")],
        [Thinking("Then that."), Text("Reading."), call("read", path="a.py")],
        [Thinking("So be it."), Text("Done.")],
    ]
    with ScriptedModel(script) as model, proxied(model, tmp_path / "home", folder) as proxy:
        (folder / "a.py").write_text("a = 1\n")
        agent(proxy, "anthropic-messages", folder, streams=streams).run("Check it.")
    assert [[block["type"] for block in m["content"]] for m in prompts(model)[2][1:]] == [
        ["thinking", "tool_use"],
        ["tool_result"],
        ["thinking", "text", "tool_use"],
        ["tool_result"],
    ]
