"""Asking a model through Pi with the agent's own last prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from foredeck_bench.scripted.pi_process import MODEL, PROVIDER
from foredeck_bench.scripted.pi_rpc import RpcPi
from foredeck_bench.twin.prompts import normalized
from foredeck_bench.twin.script import Api, ModelRequest, Step, StepResult, call
from foredeck_bench.twin.server import RecordedRequest, answer_summaries
from harness import Pi
from observed import (
    assert_recorded,
    assert_stable,
    calls_of,
    command_text,
    session_of,
    stored,
)

WIRES: tuple[Api, ...] = ("anthropic-messages", "openai-completions")

WORK: list[Step] = [[call("bash", command="seq 2000")], "worked", "more"]


def ready(request: ModelRequest) -> StepResult | None:
    """Answers the doctor's question, and summaries."""
    is_asked = "check that you can be reached" in json.dumps(request.messages)
    return "ready" if is_asked else answer_summaries(request)


def doctor(rpc: RpcPi, arguments: str = "") -> dict[str, tuple[str, str]]:
    """What `/foredeck doctor` says: status and text by name."""
    lines = command_text(rpc, f"/foredeck doctor {arguments}".rstrip()).split("\n")
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


@pytest.mark.parametrize("api", WIRES)
def test_the_doctor_asks_with_the_last_prompt_and_reads_it_from_the_cache(pi: Pi, api: Api) -> None:
    model = pi.serve(WORK, api=api, side=ready, plain=True, kept_s=300)
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
    assert asked.usage.read > 0.9 * asked.usage.prompt
    assert asked.usage.written == 0
    assert f"{asked.usage.read:,} tokens read from the cache" in text
    rpc.prompt("go on")
    assert model.requests[-1].usage.read > 0.9 * asked.usage.read, "the agent's cache is intact"
    own = [recorded for recorded in model.requests if not recorded.side]
    assert len(own) == 3
    assert_stable(own)
    with stored(pi) as store:
        assert len(calls_of(store)) == len(own), "the question is no call of the agent's"
        if api == "anthropic-messages":
            assert_recorded(store, session_of(store), own)
