"""The scripted model refuses what a provider refuses, and accounts as a provider does."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from foredeck_bench.twin.anthropic import BINDING_BETA
from foredeck_bench.twin.billing import CacheRule, PromptCache
from foredeck_bench.twin.script import Failure, Thinking, ToolCall, call, overflow
from foredeck_bench.twin.server import ScriptedModel

Json = dict[str, Any]

USER: Json = {"role": "user", "content": "hello"}
CALL: Json = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}],
}
RESULT: Json = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "text of a"}],
}
MARKED: Json = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}


def says(text: str) -> Json:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def result(call_id: str, **extra: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "x", **extra}


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def post(
    server: ScriptedModel, messages: Any, betas: tuple[str, ...] = (), **body: Any
) -> httpx.Response:
    body = {"model": "m", "stream": True, "messages": messages, **body}
    headers = {"anthropic-beta": ",".join(betas)} if betas else {}
    return httpx.post(f"{server.url}/v1/messages", json=body, headers=headers)


def post_openai(server: ScriptedModel, messages: Any) -> httpx.Response:
    body = {"model": "m", "stream": True, "messages": messages}
    return httpx.post(f"{server.url}/v1/chat/completions", json=body)


def sent_events(response: httpx.Response) -> list[Json]:
    lines = [line for line in response.text.split("\n") if line.startswith("data: {")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def usage_of(response: httpx.Response) -> Json:
    return next(e["usage"] for e in sent_events(response) if e["type"] == "message_delta")


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(lambda _request: "ok") as server:
        yield server


def assert_refused(model: ScriptedModel, response: httpx.Response, rule: str) -> None:
    assert response.status_code == 400
    assert rule in [violation.rule for violation in model.violations]


# ---------------------------------------------------------------- refusals, Anthropic

ANTHROPIC_REFUSALS: dict[str, tuple[str, Any]] = {
    "no message": ("empty_messages", []),
    "messages not a list": ("empty_messages", None),
    "assistant first": ("first_message", [says("hi"), USER]),
    "unknown role": ("unknown_role", [USER, {"role": "toolResult", "content": "x"}]),
    "system after an answer": (
        "system_place",
        [USER, says("hi"), {"role": "system", "content": "x"}],
    ),
    "not an object": ("unknown_role", ["hello"]),
    "empty content": ("empty_content", [user()]),
    "blank string": ("empty_content", [{"role": "user", "content": " \n"}]),
    "empty text block": ("empty_text", [user({"type": "text", "text": ""})]),
    "blank text block": ("empty_text", [user({"type": "text", "text": "  "})]),
    "unknown block": ("unknown_block", [user({"type": "toolCall", "id": "t1"})]),
    "tool_use by the user": ("unknown_block", [user(CALL["content"][0])]),
    "call without result, at the end": ("call_without_result", [USER, CALL]),
    "call without result, then text": ("call_without_result", [USER, CALL, USER]),
    "result one message late": ("call_without_result", [USER, CALL, says("wait"), RESULT]),
    "result without call": ("result_without_call", [USER, RESULT]),
    "result with another id": ("result_without_call", [USER, CALL, user(result("t2"))]),
    "two results": ("duplicate_result", [USER, CALL, user(result("t1"), result("t1"))]),
    "text before result": (
        "result_not_first",
        [USER, CALL, user({"type": "text", "text": "x"}, result("t1"))],
    ),
    "same id twice": ("duplicate_call", [USER, CALL, RESULT, CALL, RESULT]),
    "arguments not an object": (
        "tool_input",
        [USER, {"role": "assistant", "content": [{**CALL["content"][0], "input": "a"}]}, RESULT],
    ),
    "invented result": (
        "invented_result",
        [USER, CALL, user(result("t1", content="No result provided"))],
    ),
    "invented result in a block": (
        "invented_result",
        [USER, CALL, user(result("t1", content=[{"type": "text", "text": "No result provided"}]))],
    ),
    "empty error": ("empty_error", [USER, CALL, user(result("t1", content="", is_error=True))]),
    "empty text in a result": (
        "empty_text",
        [USER, CALL, user(result("t1", content=[{"type": "text", "text": ""}]))],
    ),
    "five cache markers": ("too_many_markers", [user(*[MARKED] * 5)]),
}


@pytest.mark.parametrize("case", ANTHROPIC_REFUSALS)
def test_anthropic_refuses(model: ScriptedModel, case: str) -> None:
    rule, messages = ANTHROPIC_REFUSALS[case]
    assert_refused(model, post(model, messages), rule)


def test_refusal_is_an_error_in_the_providers_shape_and_is_recorded(model: ScriptedModel) -> None:
    assert post(model, []).json()["error"]["type"] == "invalid_request_error"
    assert [recorded.status for recorded in model.requests] == [400]
    assert model.violations[0].request == 0


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [USER, USER],
        [USER, CALL, RESULT],
        [USER, CALL, RESULT, says("a"), USER],
        [USER, CALL, user(result("t1"), {"type": "text", "text": "and a word"})],
        [USER, CALL, user(result("t1", content=""))],
    ],
    ids=["one", "two users", "a call", "a second turn", "text after result", "empty result"],
)
def test_anthropic_accepts(model: ScriptedModel, messages: list[Json]) -> None:
    assert post(model, messages).status_code == 200
    assert model.violations == []


# ---------------------------------------------------------------- signed reasoning


def reasoning_turn(*thoughts: Thinking) -> tuple[ScriptedModel, list[Json]]:
    """A model that answered USER with reasoning and a call, and the list that follows from it."""
    server = ScriptedModel([[*thoughts, call("read", path="a")], "ok", "ok"]).start()
    post(server, [USER], system="be good")
    reply = server.requests[0].reply
    answer = user(result(reply[-1]["id"]))
    return server, [USER, {"role": "assistant", "content": reply}, answer]


def altered(messages: list[Json], change: Callable[[list[Json]], None]) -> list[Json]:
    copied = copy.deepcopy(messages)
    change(copied)
    return copied


def set_thinking(messages: list[Json]) -> None:
    messages[1]["content"][0]["thinking"] = "something else"


def set_signature(messages: list[Json]) -> None:
    messages[1]["content"][0]["signature"] = "forged"


def swap(messages: list[Json]) -> None:
    blocks = messages[1]["content"]
    blocks[0], blocks[1] = blocks[1], blocks[0]


def drop_one(messages: list[Json]) -> None:
    del messages[1]["content"][0]


def drop_all(messages: list[Json]) -> None:
    del messages[1]["content"][0:2]


def change_before(messages: list[Json]) -> None:
    messages[0] = {"role": "user", "content": "hello, changed"}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (set_thinking, "reasoning_altered"),
        (set_signature, "reasoning_unknown"),
        (swap, "reasoning_reordered"),
        (drop_one, "reasoning_altered"),
        (drop_all, "reasoning_missing"),
        (change_before, "prefix_changed"),
    ],
)
def test_signed_reasoning_of_the_current_turn_is_bound(
    change: Callable[[list[Json]], None], rule: str
) -> None:
    server, messages = reasoning_turn(Thinking("first"), Thinking("second", redacted=True))
    with server:
        assert_refused(server, post(server, altered(messages, change), system="be good"), rule)
        assert post(server, messages, system="be good").status_code == 200


def test_signed_reasoning_of_an_earlier_turn_is_bound_as_long_as_it_comes_back() -> None:
    server, messages = reasoning_turn(Thinking("first"))
    with server:
        messages.append(says("done"))
        messages.append(user({"type": "text", "text": "and now?"}))
        changed = altered(messages, change_before)
        assert_refused(server, post(server, changed, system="be good"), "prefix_changed")
        assert post(server, altered(changed, drop_one), system="be good").status_code == 200


def test_a_word_after_the_results_ends_the_turn() -> None:
    server, messages = reasoning_turn(Thinking("first"))
    with server:
        without = altered(altered(messages, change_before), drop_one)
        assert_refused(server, post(server, without, system="be good"), "reasoning_missing")
        told = [*without, user({"type": "text", "text": "go on"})]
        assert post(server, told, system="be good").status_code == 200
        mixed = copy.deepcopy(without)
        mixed[-1]["content"].append({"type": "text", "text": "go on"})
        assert post(server, mixed, system="be good").status_code == 200


def test_a_moved_cache_marker_does_not_count_as_changed_prefix() -> None:
    server, messages = reasoning_turn(Thinking("first"))
    with server:
        marked = {"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}
        messages[0] = user(marked)
        assert post(server, messages, system="be good").status_code == 200


def test_where_the_provider_drops_unbound_blocks_a_changed_prefix_is_accepted() -> None:
    server, messages = reasoning_turn(Thinking("first"))
    binding = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    with server:
        changed = altered(messages, change_before)
        without = post(server, changed, system="be good", thinking=binding)
        assert_refused(server, without, "beta_missing")
        asked = post(server, changed, (BINDING_BETA,), system="be good", thinking=binding)
        assert asked.status_code == 200
        (dropped,) = sent_events(asked)[0]["message"]["input_transformations"]
    assert dropped == {
        "type": "thinking_dropped",
        "path": "messages.1.content.0",
        "reason": "prefix_binding_mismatch",
    }


def test_reasoning_of_an_earlier_turn_may_go_but_not_change() -> None:
    server, messages = reasoning_turn(Thinking("first"), Thinking("second"))
    with server:
        later = [*messages, says("done"), {"role": "user", "content": "next"}]
        refused = post(server, altered(later, drop_one), system="be good")
        assert_refused(server, refused, "reasoning_altered")
        gone = altered(altered(later, drop_all), change_before)
        assert post(server, gone, system="be good").status_code == 200


# ---------------------------------------------------------------- refusals, OpenAI


def openai_call(call_id: str, arguments: str = "{}") -> Json:
    function = {"name": "read", "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def openai_calls(*calls: Json) -> Json:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def tool(call_id: str, content: str = "x") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


SYSTEM: Json = {"role": "system", "content": "be good"}
OPENAI_REFUSALS: dict[str, tuple[str, Any]] = {
    "no message": ("empty_messages", []),
    "only a system prompt": ("empty_messages", [SYSTEM]),
    "assistant first": ("first_message", [SYSTEM, {"role": "assistant", "content": "hi"}, USER]),
    "unknown role": ("unknown_role", [{"role": "toolResult", "content": "x"}]),
    "empty content": ("empty_content", [{"role": "user", "content": ""}]),
    "empty part": ("empty_text", [user({"type": "text", "text": " "})]),
    "silent assistant": ("empty_content", [USER, {"role": "assistant", "content": None}]),
    "call without result": ("call_without_result", [USER, openai_calls(openai_call("c1"))]),
    "one of two results": (
        "call_without_result",
        [USER, openai_calls(openai_call("c1"), openai_call("c2")), tool("c1"), USER],
    ),
    "result without call": ("result_without_call", [USER, tool("c1")]),
    "invented result": (
        "invented_result",
        [USER, openai_calls(openai_call("c1")), tool("c1", "No result provided")],
    ),
    "broken arguments": (
        "tool_input",
        [USER, openai_calls(openai_call("c1", '{"a":')), tool("c1")],
    ),
    "altered reasoning": (
        "reasoning_altered",
        [USER, {"role": "assistant", "content": "a", "reasoning_content": "never said"}, USER],
    ),
}


@pytest.mark.parametrize("case", OPENAI_REFUSALS)
def test_openai_refuses(model: ScriptedModel, case: str) -> None:
    rule, messages = OPENAI_REFUSALS[case]
    assert_refused(model, post_openai(model, messages), rule)


# ---------------------------------------------------------------- streams


def respond(server: ScriptedModel, *items: Json) -> httpx.Response:
    body = {"model": "m", "stream": True, "input": [{"role": "user", "content": "go"}, *items]}
    return httpx.post(f"{server.url}/v1/responses", json=body)


def made(response: httpx.Response) -> list[Json]:
    """The items of a streamed response."""
    done = (e for e in sent_events(response) if e["type"] == "response.output_item.done")
    return [event["item"] for event in done]


def output_of(call: Json, text: str) -> Json:
    return {"type": "function_call_output", "call_id": call["call_id"], "output": text}


STEP = (Thinking("", redacted=True), ToolCall("ls"))


def test_encrypted_reasoning_of_the_turn_comes_back_whole_and_with_what_follows_it() -> None:
    with ScriptedModel([STEP, *["on"] * 3]) as server:
        reasoning, called = made(respond(server))
        answered = output_of(called, "a.txt")
        assert respond(server, reasoning, called, answered).status_code == 200
        assert respond(server, called, answered).status_code == 400
        alone = respond(server, called, answered, reasoning)
        assert "without its required following item" in alone.json()["error"]["message"]
        assert [each.rule for each in server.violations] == ["reasoning_altered", "reasoning_alone"]


@pytest.mark.parametrize("binds", [False, True])
def test_bytes_before_encrypted_reasoning_may_change_unless_it_binds(binds: bool) -> None:
    with ScriptedModel([STEP, STEP, "on", "again"], binds=binds) as server:
        first = made(respond(server))
        before = [*first, output_of(first[-1], "a.txt")]
        second = made(respond(server, *before))
        folded = [*first, output_of(first[-1], "folded"), *second, output_of(second[-1], "b.txt")]
        assert respond(server, *folded).status_code == (400 if binds else 200)
        whole = [*before, *second, output_of(second[-1], "b.txt")]
        assert respond(server, *whole).status_code == 200
        assert server.violations == []


def test_failures_come_with_their_status_and_are_no_violations() -> None:
    with ScriptedModel(
        [Failure(429, "rate_limit_error", "Too fast.", 3), overflow(9, 5), "ok"]
    ) as server:
        limited = post(server, [USER])
        assert (limited.status_code, limited.headers["retry-after"]) == (429, "3")
        assert "prompt is too long" in post(server, [USER]).text
        assert post(server, [USER]).status_code == 200
        assert server.violations == []


def test_a_prompt_over_the_window_is_refused_without_using_a_step() -> None:
    with ScriptedModel(["ok"], window=100) as server:
        long = post(server, [{"role": "user", "content": "x" * 1000}])
        assert long.status_code == 400
        assert "prompt is too long" in long.text
        assert (server.steps_left, server.violations) == (1, [])


# ---------------------------------------------------------------- the simulated cache


def marked(text: str) -> Json:
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}


def plain(text: str) -> Json:
    return {"type": "text", "text": text}


@pytest.fixture
def cached() -> Iterator[ScriptedModel]:
    cache = PromptCache(CacheRule("markers", 300.0, minimum_tokens=0))
    with ScriptedModel(lambda _: "ok", cache=cache) as server:
        yield server


@pytest.mark.parametrize(("new_blocks", "hit"), [(20, True), (21, False)])
def test_the_look_back_ends_after_twenty_blocks(
    cached: ScriptedModel, new_blocks: int, hit: bool
) -> None:
    post(cached, [user(marked("a" * 400))])
    more = [plain(f"block {i}") for i in range(new_blocks - 1)]
    usage = usage_of(post(cached, [user(plain("a" * 400), *more, marked("end"))]))
    assert (usage["cache_read_input_tokens"] > 0) is hit


def test_short_prompts_are_not_cached() -> None:
    with ScriptedModel(lambda _: "ok") as server:
        for _ in range(2):
            usage = usage_of(post(server, [user(marked("a" * 400))]))
            assert usage["cache_read_input_tokens"] == 0
            assert usage["cache_creation_input_tokens"] == 0


def test_openai_reads_in_steps_of_128_tokens() -> None:
    with ScriptedModel(lambda _: "ok") as server:
        messages = [{"role": "user", "content": "a" * 6000}]
        post_openai(server, messages)
        events = sent_events(post_openai(server, [*messages, USER]))
    cached_tokens = events[-1]["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached_tokens > 1024
    assert cached_tokens % 128 == 0
