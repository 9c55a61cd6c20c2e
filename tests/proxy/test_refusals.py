"""What a provider refuses goes out again as it came only where foredeck may be the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from foredeck_agents.proxy.refusals import may_be_ours
from foredeck_bench.twin.script import Failure
from foredeck_bench.twin.server import ScriptedModel
from proxy.agents import APIS, agent, proxied

SAID = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]
ASKED = {"model": "m-1", "max_tokens": 9, "temperature": 3, "messages": SAID, "tools": [{}]}
OURS = {**ASKED, "tools": [{}, {"name": "activate"}]}
FOLDED = {**OURS, "messages": [SAID[0], {"role": "assistant", "content": "@2"}]}


def _anthropic(text: str) -> bytes:
    return json.dumps({"error": {"type": "invalid_request_error", "message": text}}).encode()


def _openai(text: str, **members: Any) -> bytes:
    return json.dumps({"error": {"message": text, "param": None, **members}}).encode()


@pytest.mark.parametrize(
    "refusal",
    [
        _anthropic("max_tokens: 128000 > 64000, which is the maximum allowed"),
        _anthropic("thinking.budget_tokens: must be at least 1024"),
        _anthropic("tools.0.custom.name: String should match pattern"),
        _anthropic("messages.0.content.0.image.source: invalid base64 data"),
        _anthropic("messages: text content blocks must be non-empty"),
        _anthropic("temperature: range: 0..1"),
        _anthropic("Your credit balance is too low to access the API."),
        _anthropic("prompt is too long: 210000 tokens > 200000 maximum"),
        _anthropic("input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"),
        _openai("Unsupported parameter: 'temperature' is not supported", param="temperature"),
        _openai("Unsupported value: 'temperature' does not support 3"),
        _openai("The requested model 'm-1' does not exist.", code="model_not_found"),
        _openai("Invalid value", param="messages[0].content[1].image_url"),
        _openai("This model's maximum context length is 128000 tokens, you sent 140000."),
        json.dumps({"detail": [{"loc": ["body", "max_tokens"], "msg": "too small"}]}).encode(),
        json.dumps({"error": "model 'm-1' not found"}).encode(),
    ],
)
def test_what_the_client_wrote_is_not_foredecks(refusal: bytes) -> None:
    assert not may_be_ours(refusal, ASKED, OURS, "messages")


@pytest.mark.parametrize(
    "refusal",
    [
        _anthropic("messages.1.content.0: unexpected block"),
        _anthropic("messages.1: `tool_use` ids were found without `tool_result` blocks"),
        _anthropic("messages.0.content.0: Invalid `signature` in `thinking` block"),
        _anthropic("tools.1.custom.input_schema: JSON schema is invalid"),
        _anthropic("messages: roles must alternate"),
        _openai("Invalid", param="messages[1].content"),
        _openai("The encrypted content for item rs_1 could not be verified."),
        _openai("This model's maximum context length is 128000 tokens, you sent 128001."),
        json.dumps({"detail": [{"loc": ["body", "tools", 1], "msg": "unknown"}]}).encode(),
        b"no",
        b'{"message": "no"}',
        b"[]",
    ],
)
def test_what_may_come_of_the_changes_is_tried_without_them(refusal: bytes) -> None:
    assert may_be_ours(refusal, ASKED, FOLDED, "messages")
    assert not may_be_ours(refusal, ASKED, ASKED, "messages")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("status", [400, 422])
def test_a_refusal_of_the_clients_own_making_comes_back_at_once(
    tmp_path: Path, api: str, status: int
) -> None:
    script = [Failure(status, "invalid_request_error", "Unknown model: 'model'"), "One."]
    with ScriptedModel(script) as model, proxied(model, tmp_path / "h", tmp_path / "w") as proxy:
        one = agent(proxy, api, tmp_path / "w")
        one.say("Go.")
        with pytest.raises(httpx.HTTPStatusError, match=f"{status}"):
            one.ask()
        assert len(model.requests) == 1
        one.ask()
    assert proxy.told == []


def test_a_refusal_of_both_requests_is_not_foredecks(tmp_path: Path) -> None:
    script = [Failure(400, "invalid_request_error", "no")] * 2
    with ScriptedModel(script) as model, proxied(model, tmp_path / "h", tmp_path / "w") as proxy:
        one = agent(proxy, APIS[0], tmp_path / "w")
        one.say("Go.")
        with pytest.raises(httpx.HTTPStatusError, match="400"):
            one.ask()
    assert len(model.requests) == 2
    assert proxy.told == []
