"""Asking a model through Pi: beside the agent's work, and with its own last prompt."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from foredeck_bench.scripted import ModelRequest, RecordedRequest, ScriptedModel, call
from foredeck_bench.scripted.pi_process import MODEL, PROVIDER
from foredeck_bench.scripted.pi_rpc import RpcPi
from foredeck_bench.twin.prompts import normalized
from foredeck_bench.twin.request import Api
from foredeck_bench.twin.server import answer_summaries
from foredeck_bench.twin.steps import Reply, Step, StepResult, Text, server_error
from harness import Pi, on_either
from observed import assert_recorded, assert_stable, calls_of, notified, session_of, stored

Json = dict[str, Any]

WIRES: tuple[Api, ...] = ("anthropic-messages", "openai-completions")

ASIDE = "Beside the work: what is in hand?"
WORK: list[Step] = [[call("bash", command="seq 2000")], "worked", "more"]


def beside(answer: StepResult) -> Any:
    """Answers what is asked beside the script: this question, the doctor's, and summaries."""

    def answered(request: ModelRequest) -> StepResult | None:
        last = json.dumps(request.newest)
        if ASIDE in last or "check that you can be reached" in last:
            return answer
        return answer_summaries(request)

    return answered


class Questions:
    """An engine in Pi that asks what a test wants."""

    def __init__(self, pi: Pi, folder: Path) -> None:
        self._file = folder / "question.json"
        engine = [sys.executable, str(Path(__file__).with_name("asking_engine.py"))]
        self.environment = {"FOREDECK_ENGINE": json.dumps([*engine, str(self._file)])}
        self.rpc = pi.rpc(foredeck=True, environment=self.environment)

    def write(self, timeout_s: float = 60, **question: Any) -> None:
        """What is asked next. `wanted` unless that is said: the scripted model is on loopback."""
        asked = {"messages": [{"role": "user", "content": ASIDE}], "max_tokens": 200}
        given = {"question": {**asked, "wanted": True, **question}, "timeout_s": timeout_s}
        self._file.write_text(json.dumps(given))

    def ask(self, timeout_s: float = 60, **question: Any) -> Json:
        """Ask; the answer or error as JSON."""
        self.write(timeout_s, **question)
        self.rpc.command("/foredeck doctor")
        answer: Json = json.loads(notified(self.rpc)[-1])
        return answer


@pytest.fixture
def questions(pi: Pi, tmp_path: Path) -> Questions:
    return Questions(pi, tmp_path)


def doctor(rpc: RpcPi, arguments: str = "") -> dict[str, tuple[str, str]]:
    """What `/foredeck doctor` says: status and text by name."""
    rpc.command(f"/foredeck doctor {arguments}".rstrip())
    lines = notified(rpc)[-1].split("\n")
    return {line[9:19].strip(): (line[:7].strip(), line[21:]) for line in lines}


def without_end(body: Mapping[str, Any]) -> Any:
    """A request as the provider reads it, without messages and the limit of the answer."""
    limits = ("messages", "max_tokens", "max_completion_tokens")
    return {name: value for name, value in body.items() if name not in limits}


def blocks(recorded: RecordedRequest) -> list[Any]:
    """The blocks of all messages, cache markers left out."""
    return [
        (message["role"], normalized(block))
        for message in recorded.request.messages
        for block in (
            message["content"]
            if isinstance(message.get("content"), list)
            else [{"type": "text", "text": message.get("content")}]
        )
    ]


def worked(pi: Pi, api: Api, answer: StepResult = "ready", **options: Any) -> ScriptedModel:
    return pi.serve(WORK, api=api, side=beside(answer), plain=True, **options)


@pytest.mark.parametrize("api", WIRES)
def test_the_doctor_asks_with_the_last_prompt_and_reads_it_from_the_cache(pi: Pi, api: Api) -> None:
    model = worked(pi, api, kept_s=300)
    rpc = pi.rpc(foredeck=True)
    found = doctor(rpc)
    assert found["model"][1].startswith(f"{PROVIDER}/{MODEL}, $3 in, $15 out, $0.3 read")
    assert found["warm cache"] == (
        "note",
        "would not be read: no call of this session has gone out with foredeck's answer yet",
    )
    rpc.prompt("go")
    assert doctor(rpc)["warm cache"] == ("ok", "would be read: the prompt of call 2")
    assert len(model.requests) == 2, "looking costs nothing"
    last = model.requests[-1]
    status, text = doctor(rpc, "ask")["question"]
    assert status == "ok"
    assert text.startswith('answered "ready"; ')
    asked = model.requests[-1]
    assert without_end(asked.request.body) == without_end(last.request.body)
    assert "tool_choice" not in asked.request.body
    assert blocks(asked)[: len(blocks(last))] == blocks(last)
    assert len(blocks(asked)) == len(blocks(last)) + 1
    assert asked.usage is not None
    assert asked.usage.read > 0.9 * asked.usage.prompt
    assert asked.usage.written == 0
    assert f"{asked.usage.read:,} tokens read from the cache" in text
    rpc.prompt("go on")
    assert model.violations == []
    assert model.requests[-1].usage is not None
    assert model.requests[-1].usage.read > 0.9 * asked.usage.read, "the agent's cache is intact"
    own = [recorded for recorded in model.requests if not recorded.side]
    assert len(own) == 3
    assert_stable(own)
    with stored(pi) as store:
        assert len(calls_of(store)) == len(own), "the question is no call of the agent's"
        if api == "anthropic-messages":
            assert_recorded(store, session_of(store), own)


@on_either("api", *WIRES)
def test_a_question_of_its_own_goes_out_as_it_was_asked(
    pi: Pi, questions: Questions, api: Api
) -> None:
    model = worked(pi, api, [Text("it is "), call("note", text="x")], reasoning=True)
    tool = {"name": "note", "description": "Notes.", "parameters": {"type": "object"}}
    answer = questions.ask(
        system="You look on.",
        model={"provider": PROVIDER, "id": MODEL},
        reasoning="low",
        tools=[tool],
        session_id="observer-1",
        retention="none",
        max_tokens=2000,
    )
    (asked,) = model.requests
    assert model.violations == []
    assert (answer["text"], answer["failed"]) == ("it is ", None)
    assert answer["calls"] == [{"name": "note", "arguments": {"text": "x"}}]
    assert answer["model"] == {"provider": PROVIDER, "id": MODEL}
    assert answer["single_slot"]
    assert asked.request.system == "You look on."
    assert asked.request.tools == ("note",)
    assert "cache_control" not in json.dumps(asked.request.body)
    body = asked.request.body
    assert "thinking" in body if api == "anthropic-messages" else "reasoning_effort" in body
    assert asked.usage is not None
    assert answer["usage"]["fresh"] == asked.usage.uncached
    assert answer["usage"]["output"] == asked.usage.output
    expected = (asked.usage.uncached * 3 + asked.usage.output * 15) / 1e6
    assert answer["usage"]["cost"] == pytest.approx(expected)


def test_what_is_refused_sends_nothing(pi: Pi, questions: Questions) -> None:
    model = worked(pi, "anthropic-messages")
    answer = questions.ask(wanted=False)
    assert (answer["error"], answer["usage"]) == ("NotAsked", None)
    assert "one at a time" in answer["text"]
    assert "no call of this session" in questions.ask(warm=1)["text"]
    answer = questions.ask(model={"provider": PROVIDER, "id": "none"})
    assert answer["error"] == "NoModel"
    assert "/model lists" in answer["text"]
    questions.rpc.prompt("go")
    assert "call 1 is not the last" in questions.ask(warm=1)["text"]
    questions.rpc.command("/foredeck off")
    assert "foredeck is off" in questions.ask()["text"]
    assert len(model.requests) == 2


def test_an_answer_of_no_use_is_told_with_what_it_took(pi: Pi, questions: Questions) -> None:
    answers: list[StepResult] = [call("bash", command="rm -r ."), server_error()]
    model = pi.serve(WORK, side=lambda r: beside(answers[0])(r), plain=True)
    questions.rpc.prompt("go")
    (pi.repo / "kept").touch()
    answer = questions.ask(warm=2)
    assert answer["error"] == "UselessAnswer"
    assert "calls tools" in answer["text"]
    assert answer["usage"]["read"] > 1000
    assert answer["usage"]["cost"] > 0
    answers.pop(0)
    answer = questions.ask()
    assert answer["error"] == "UselessAnswer"
    assert "Internal server error" in answer["text"]
    assert (pi.repo / "kept").exists()
    assert model.violations == []


def test_the_agent_works_on_while_a_question_waits(pi: Pi, questions: Questions) -> None:
    slow = Reply((Text("late"),), delay_s=120)
    model = worked(pi, "anthropic-messages", slow)
    questions.rpc.prompt("go")
    questions.write(timeout_s=8, warm=2)
    asked = questions.rpc.send_later("prompt", message="/foredeck doctor")
    while len(model.requests) < 3:
        time.sleep(0.05)
    questions.rpc.prompt("go on")
    assert [r.side for r in model.requests] == [False, False, True, False]
    questions.rpc.answer_to(asked)
    answer = json.loads(notified(questions.rpc)[-1])
    assert answer["error"] == "AskTimedOut"
    assert "8 s" in answer["text"]


def test_pi_ends_while_a_question_waits(pi: Pi, questions: Questions) -> None:
    model = worked(pi, "anthropic-messages", Reply((Text("late"),), delay_s=600))
    questions.rpc.prompt("go")
    questions.write(timeout_s=500, warm=2)
    questions.rpc.send_later("prompt", message="/foredeck doctor")
    while len(model.requests) < 3:
        time.sleep(0.05)
    assert questions.rpc.shutdown() == 0


REWRITES = """
export default function (pi) {
  let n = 0;
  pi.on("before_provider_request", ({ payload }) => {
    payload.messages[0].content[0].text = `request ${(n += 1)}`;
    return payload;
  });
}
"""


def test_where_others_change_requests_the_cache_is_left_alone(pi: Pi, tmp_path: Path) -> None:
    other = tmp_path / "other.ts"
    other.write_text(REWRITES)
    worked(pi, "anthropic-messages")
    rpc = pi.rpc(foredeck=True, extensions=[other])
    rpc.prompt("go")
    status, text = doctor(rpc)["warm cache"]
    assert status == "note"
    assert "another extension changes requests" in text


def test_a_budget_for_thinking_is_not_asked_again(pi: Pi) -> None:
    model = worked(pi, "anthropic-messages", reasoning=True)
    rpc = pi.rpc(foredeck=True, arguments=["--thinking", "low"])
    rpc.prompt("go")
    assert model.requests[-1].request.body["thinking"]["type"] == "enabled"
    assert "thinks within a budget" in doctor(rpc)["warm cache"][1]
