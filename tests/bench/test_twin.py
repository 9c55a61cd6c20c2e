"""The providers' twin keeps conversations, drops reasoning, caches and charges as is documented."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from foredeck_bench.twin.__main__ import step_of
from foredeck_bench.twin.anthropic import BINDING_BETA, EFFORT_BETA, INLINE_TOOLS_BETA, THREADS_BETA
from foredeck_bench.twin.billing import CacheRule, ModelRecord, Usage
from foredeck_bench.twin.report import TwinReport
from foredeck_bench.twin.script import Failure, Reply, Text, Thinking, ToolCall, call
from foredeck_bench.twin.server import RecordedRequest, ScriptedModel

Json = dict[str, Any]

OPUS: Json = {
    "id": "claude-opus-5-5",
    "cost": {"input": 4, "output": 20, "cacheRead": 0.2, "cacheWrite": 5},
    "thinkingLevelMap": {"off": None},
    "promptCache": {"short": 300, "long": 3600},
}
SOL: Json = {
    "id": "gpt-6.2-sol",
    "cost": {
        "input": 2,
        "output": 10,
        "cacheRead": 0.1,
        "cacheWrite": 2.5,
        "tiers": [
            {
                "inputTokensAbove": 272_000,
                "input": 4,
                "output": 15,
                "cacheRead": 0.2,
                "cacheWrite": 5,
            }
        ],
    },
    "compat": {"supportsExplicitPromptCacheMode": True},
}
CLIENT = httpx.Client()
DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
LONG = "a" * 8000


@pytest.fixture
def now() -> list[float]:
    return [0.0]


@pytest.fixture
def opus(now: list[float]) -> Iterator[ScriptedModel]:
    record = ModelRecord.of_pi("anthropic-messages", OPUS)
    script = lambda _: [Thinking("why"), Text("ok")]  # noqa: E731
    with ScriptedModel(script, record=record, clock=lambda: now[0]) as server:
        yield server


@pytest.fixture
def sol(now: list[float]) -> Iterator[ScriptedModel]:
    record = ModelRecord.of_pi("openai-responses", SOL)
    script = lambda _: [Thinking("", redacted=True), call("ls")]  # noqa: E731
    with ScriptedModel(script, record=record, clock=lambda: now[0]) as server:
        yield server


def ask(server: ScriptedModel, messages: list[Json], *betas: str, **body: Any) -> httpx.Response:
    """One request to the Messages API."""
    headers = {"anthropic-beta": ",".join(betas)}
    whole = {"model": "m", "max_tokens": 99, "messages": messages, **body}
    return CLIENT.post(f"{server.url}/v1/messages", json=whole, headers=headers)


def respond(server: ScriptedModel, items: list[Json], **body: Any) -> Json:
    """One request to the Responses API, and its answer."""
    whole = {"model": "m", "input": items, **body}
    answer = CLIENT.post(f"{server.url}/v1/responses", json=whole)
    assert answer.status_code == 200, answer.text
    response: Json = answer.json()
    return response


def user(text: str, **more: Any) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": text, **more}]}


def answer_of(response: httpx.Response) -> Json:
    return {"role": "assistant", "content": response.json()["content"]}


def usage_of(recorded: RecordedRequest) -> Usage:
    assert recorded.usage is not None
    return recorded.usage


def code_of(response: httpx.Response) -> str:
    return str(response.json()["error"].get("details", {}).get("error_code"))


# ---------------------------------------------------------------- threads


def test_a_thread_is_continued_by_what_is_new(opus: ScriptedModel) -> None:
    first = ask(opus, [user("one")], THREADS_BETA, system="s", thread={"type": "create"})
    thread = {"type": "continue", "previous_message_id": first.json()["id"]}
    assert ask(opus, [user("two")], THREADS_BETA, thread=thread).status_code == 200
    whole = opus.requests[1].request
    assert whole.system == "s"
    assert whole.messages == [user("one"), answer_of(first), user("two")]
    assert code_of(ask(opus, [user("three")], THREADS_BETA, thread=thread)) == (
        "thread_already_continued"
    )


def test_a_thread_expires_and_holds_its_settings(opus: ScriptedModel, now: list[float]) -> None:
    low = {"output_config": {"effort": "low"}}
    first = ask(opus, [user("one")], THREADS_BETA, thread={"type": "create"}, **low)
    thread = {"type": "continue", "previous_message_id": first.json()["id"]}
    changed = ask(opus, [user("two")], THREADS_BETA, thread=thread)
    assert code_of(changed) == "thread_fingerprint_mismatch"
    assert "output_config" in changed.text
    assert "thread" in ask(opus, [user("two")], thread=thread, **low).json()["error"]["message"]
    now[0] += 301
    late = ask(opus, [user("two")], THREADS_BETA, thread=thread, **low)
    assert (late.status_code, code_of(late)) == (404, "thread_not_found")
    assert opus.violations == [], "a client that replays is a correct one"


# ---------------------------------------------------------------- what Anthropic refuses

EFFORT: Json = {"role": "system", "content": [], "output_config": {"effort": "low"}}
TOOL: Json = {"name": "read", "input_schema": {"type": "object"}}
ADDED: Json = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": TOOL}}
REMOVED: Json = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "read"}}


def system(*blocks: Json) -> Json:
    return {"role": "system", "content": list(blocks)}


CHANGES: dict[str, tuple[str | None, list[Json], tuple[str, ...], Json]] = {
    "effort": (None, [user("a"), EFFORT], (EFFORT_BETA,), {}),
    "effort, no beta": ("beta_missing", [user("a"), EFFORT], (), {}),
    "neither content nor effort": ("empty_content", [user("a"), system()], (), {}),
    "tool by value": (None, [user("a"), system(ADDED)], (INLINE_TOOLS_BETA,), {}),
    "tool by value, no beta": ("beta_missing", [user("a"), system(ADDED)], (), {}),
    "withdrawn": (None, [user("a"), system(ADDED, REMOVED)], (INLINE_TOOLS_BETA,), {}),
    "withdrawn, unknown": ("unknown_tool", [user("a"), system(REMOVED)], (INLINE_TOOLS_BETA,), {}),
    "all deferred": ("all_deferred", [user("a")], (), {"tools": [TOOL | {"defer_loading": True}]}),
    "thinking off": ("thinking_off", [user("a")], (), {"thinking": {"type": "disabled"}}),
    "prefill": ("prefill", [user("a"), {"role": "assistant", "content": "b"}], (), {}),
    "an hour after five minutes": (
        "marker_order",
        [
            user("a", cache_control={"type": "ephemeral"}),
            user("b", cache_control={"type": "ephemeral", "ttl": "1h"}),
        ],
        (),
        {},
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_changes_in_mid_conversation(opus: ScriptedModel, case: str) -> None:
    rule, messages, betas, body = CHANGES[case]
    assert ask(opus, messages, *betas, **body).status_code == (400 if rule else 200)
    assert [violation.rule for violation in opus.violations] == ([rule] if rule else [])


# ---------------------------------------------------------------- bound reasoning


def test_a_change_drops_what_stands_behind_it_and_nothing_else(opus: ScriptedModel) -> None:
    first = ask(opus, [user("one")])
    second = ask(opus, [user("one"), answer_of(first), user("two")])
    talk = [user("one"), answer_of(first), user("two, changed"), answer_of(second), user("three")]
    assert "prefix" in ask(opus, talk).json()["error"]["message"]
    opus.violations.clear()
    third = ask(opus, talk, BINDING_BETA, thinking=DROP)
    (gone,) = third.json()["input_transformations"]
    assert gone["path"] == "messages.3.content.0"
    fourth = ask(opus, [*talk, answer_of(third), user("four")], BINDING_BETA, thinking=DROP)
    assert fourth.json()["input_transformations"] == [gone], "what is new holds"
    report = TwinReport.of(opus)
    assert (report.dropped, report.reported, report.refused) == (1, 2, {})


def steps_of(sol: ScriptedModel, texts: list[str]) -> list[Json]:
    """A turn of these tool outputs, each step answered by the twin; the items of the next one."""
    items = [{"role": "user", "content": [{"type": "input_text", "text": LONG}]}]
    for text in texts:
        output = respond(sol, items)["output"]
        items = [*items, *output, result(output[-1], text)]
    return items


def result(called: Json, text: str) -> Json:
    return {"type": "function_call_output", "call_id": called["call_id"], "output": text}


def test_openai_withholds_what_stands_behind_a_change_and_says_so_each_time(
    sol: ScriptedModel,
) -> None:
    items = steps_of(sol, ["one", "two", "three"])
    assert "input_transformations" not in respond(sol, items)
    changed = [*items[:3], result(items[2], "folded"), *items[4:]]
    answer = respond(sol, changed)
    reasoning = [item["id"] for item in items if item.get("type") == "reasoning"]
    told = [(each["id"], each["reason"]) for each in answer["input_transformations"]]
    assert told == [(name, "prefix_mismatch") for name in reasoning[1:]]
    more = [*changed, *answer["output"], result(answer["output"][-1], "four")]
    assert len(respond(sol, more)["input_transformations"]) == 2, "what is new holds"
    assert TwinReport.of(sol).dropped == 2
    assert sol.violations == []


def test_models_before_gpt_5_6_do_not_see_reasoning_of_earlier_turns() -> None:
    record = ModelRecord.of_pi("openai-responses", SOL | {"id": "gpt-5.5"})
    assert not record.carries
    with ScriptedModel(lambda _: [Thinking("", redacted=True), Text("x")], record=record) as server:
        first = respond(server, [user("one")])
        answer = respond(server, [user("one"), *first["output"], user("two")])
    (told,) = answer["input_transformations"]
    assert told["reason"] == "turn_boundary"


# ---------------------------------------------------------------- caches


def test_openai_finds_a_prefix_only_where_a_breakpoint_stood(sol: ScriptedModel) -> None:
    items = steps_of(sol, ["one " * 500, "two " * 500])
    respond(sol, items)
    last = usage_of(sol.requests[-1])
    before = usage_of(sol.requests[-2])
    assert last.read == before.prompt, "all up to the newest message of the request before"
    assert last.uncached == 0
    respond(sol, [*items[:3], result(items[2], "folded"), *items[4:]])
    again = usage_of(sol.requests[-1])
    assert again.read == usage_of(sol.requests[0]).prompt, "what the first request ended on"
    assert again.ideal > again.read


def test_openai_forgets_after_half_an_hour(sol: ScriptedModel, now: list[float]) -> None:
    items = steps_of(sol, ["one"])
    for idle_s, is_read in ((1799, True), (1801, False)):
        now[0] += idle_s
        respond(sol, items)
        assert (usage_of(sol.requests[-1]).read > 0) is is_read


@pytest.mark.parametrize(("mode", "is_read"), [("implicit", True), ("explicit", False)])
def test_explicit_mode_writes_no_implicit_breakpoint(
    sol: ScriptedModel, mode: str, is_read: bool
) -> None:
    items = [{"role": "user", "content": [{"type": "input_text", "text": LONG}]}]
    for _ in range(2):
        respond(sol, items, prompt_cache_options={"mode": mode})
    assert (usage_of(sol.requests[-1]).read > 0) is is_read
    items[0]["content"][0]["prompt_cache_breakpoint"] = {"mode": "explicit"}
    for _ in range(2):
        respond(sol, items, prompt_cache_options={"mode": "explicit"})
    assert usage_of(sol.requests[-1]).read > 0


@pytest.mark.parametrize(("results", "is_read"), [(79, True), (80, False)])
def test_the_latest_eighty_breakpoints_are_looked_at(results: int, is_read: bool) -> None:
    calls = [ToolCall("ls", {}, f"c{number}") for number in range(results)]
    record = ModelRecord.of_pi("openai-responses", SOL)
    with ScriptedModel([calls, "done"], record=record) as server:
        items = [{"role": "user", "content": [{"type": "input_text", "text": LONG}]}]
        output = respond(server, items)["output"]
        respond(server, [*items, *output, *(result(each, "x") for each in output)])
    assert (usage_of(server.requests[-1]).read > 0) is is_read


def test_what_lives_an_hour_costs_twice_the_input(opus: ScriptedModel, now: list[float]) -> None:
    long = [user(LONG, cache_control={"type": "ephemeral", "ttl": "1h"})]
    ask(opus, long)
    usage = usage_of(opus.requests[0])
    assert usage.written == usage.written_long == 2000
    assert opus.record.dollars(usage) == pytest.approx((2000 * 8 + usage.output * 20) / 1e6)
    now[0] += 3599
    ask(opus, long)
    assert usage_of(opus.requests[1]).read == 2000


def test_changed_thinking_loses_the_messages_and_not_the_system_prompt(opus: ScriptedModel) -> None:
    head = {"system": [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]}
    talk = [user(LONG, cache_control={"type": "ephemeral"})]
    ask(opus, talk, **head)
    ask(opus, talk, **head, output_config={"effort": "max"})
    assert usage_of(opus.requests[1]).read == 2000


def test_google_finds_any_prefix_of_4096_tokens() -> None:
    def generate(server: ScriptedModel, *texts: str) -> Json:
        contents = [{"role": "user", "parts": [{"text": text} for text in texts]}]
        url = f"{server.url}/v1beta/models/gemini-4-argon:generateContent"
        usage: Json = CLIENT.post(url, json={"contents": contents}).json()["usageMetadata"]
        return usage

    with ScriptedModel(lambda _: "ok") as server:
        for length, expected in ((4095 * 4, 0), (4096 * 4, 4096)):
            generate(server, "b" * length)
            assert generate(server, "b" * length, "more")["cachedContentTokenCount"] == expected
        assert server.violations == []


# ---------------------------------------------------------------- bills and scripts


def test_a_tier_holds_for_the_whole_request() -> None:
    record = ModelRecord.of_pi("openai-responses", SOL)
    below = Usage(read=272_000, written=0, uncached=0, output=0, ideal=0)
    above = replace(below, uncached=1)
    assert record.dollars(below) == pytest.approx(272_000 * 0.1 / 1e6)
    assert record.dollars(above) == pytest.approx((272_000 * 0.2 + 4) / 1e6)


def test_a_record_says_what_its_model_does() -> None:
    opus = ModelRecord.of_pi("anthropic-messages", OPUS)
    assert (opus.bound, opus.carries, opus.always_thinks) == (True, True, True)
    assert opus.cache == CacheRule("markers", 300.0, 1024)
    older = ModelRecord.of_pi("openai-responses", {**SOL, "id": "gpt-5.4", "compat": {}})
    assert (older.bound, older.carries, older.cache.kind) == (False, False, "steps")
    assert not ModelRecord.of_pi("anthropic-messages", {**OPUS, "id": "claude-opus-5"}).bound


def test_a_script_in_json_has_the_steps_of_one_in_python() -> None:
    assert step_of("hi") == "hi"
    assert step_of({"fail": 429, "message": "slow"}) == Failure(429, "api_error", "slow")
    blocks = ["a", {"think": "b"}, {"call": "read", "arguments": {"path": "x"}}]
    assert step_of(blocks) == Reply((Text("a"), Thinking("b"), ToolCall("read", {"path": "x"})))
    with pytest.raises(ValueError, match="no step"):
        step_of([{"say": "x"}])
