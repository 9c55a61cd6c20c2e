"""Sealed reasoning that binds what stands before it, and such that does not."""

from __future__ import annotations

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import assistant, calls, lines, result, thinking
from context.scenes import ask, finish
from context.sent import Sent
from context.test_window import folded
from foredeck.context.messages.seals import SEALINGS, binds_by_table
from foredeck.model.call_values import Decision

GPT = {"api": "openai-responses", "provider": "openai", "model": "gpt-9"}
GEMINI = {"api": "google-generative-ai", "provider": "google", "model": "gemini-9"}
ROUTED = {"api": "google-vertex", "provider": "google-vertex", "model": "claude-9"}


def use_model(host: Host, maker: dict[str, str]) -> None:
    names = {"api": maker["api"], "provider": maker["provider"], "id": maker["model"]}
    host.model = {**(host.model or {}), **names}


def sealed_step(host: Host, id: str, maker: dict[str, str], **arguments: str) -> Sent:
    """A step of the loop whose reasoning, or whose call, is sealed as on that wire."""
    call = calls(id, "bash", command=id, **arguments)
    if maker is GEMINI:
        blocks = [{**call, "thoughtSignature": "c2VhbA=="}]
    else:
        blocks = [thinking("hm", '{"id": "rs_1", "encrypted_content": "c2VhbA=="}'), call]
    host.add(assistant(*blocks, **maker), result(id, "bash", lines(20, id)))
    return host.call()


def long_turn(host: Host, maker: dict[str, str]) -> Sent:
    """A turn of sealed steps, after a pause in the middle of it."""
    use_model(host, maker)
    ask(host)
    for number in range(8):
        sealed_step(host, f"s{number}", maker)
    host.wait(600)
    return sealed_step(host, "last", maker)


@pytest.mark.parametrize("maker", [GPT, GEMINI], ids=["gpt", "gemini"])
def test_where_nothing_says_that_it_binds_a_turn_folds_before_it_ends(
    host: Host, maker: dict[str, str]
) -> None:
    sent = long_turn(host, maker)
    assert (sent.decision.kind, sent.decision.reason) == ("rebase", "cold")
    assert folded(sent) == [2, 4, 6, 8]


def test_the_reasoning_itself_and_its_calls_go_out_as_they_came(host: Host) -> None:
    use_model(host, GPT)
    ask(host)
    for number in range(8):
        sealed_step(host, f"s{number}", GPT, note="long " * 100)
    host.wait(600)
    sent = sealed_step(host, "last", GPT)
    assert folded(sent)
    for index in range(1, len(host.messages), 2):
        (shown,) = sent.parts[index]
        assert shown["content"] == host.messages[index]["content"]


def test_a_router_that_carries_claude_keeps_all_before_its_reasoning(host: Host) -> None:
    assert long_turn(host, ROUTED).decision == Decision()


def test_a_wire_that_nobody_knows_keeps_all_before_its_reasoning(host: Host) -> None:
    assert long_turn(host, {**GPT, "api": "a-wire-of-my-own"}).decision == Decision()


def test_what_another_model_has_sealed_in_the_same_turn_binds_still(host: Host) -> None:
    use_model(host, GPT)
    ask(host)
    for number in range(8):
        sealed_step(host, f"s{number}", ROUTED)
    host.wait(600)
    assert sealed_step(host, "last", ROUTED).decision == Decision()


def test_it_can_be_switched_off(new_host: NewHost) -> None:
    host = new_host(rebase={"within_sealed_turns": False})
    sent = long_turn(host, GPT)
    assert sent.decision == Decision()
    assert "seals" not in sent.record.fields["state"]


def test_a_turn_that_was_begun_bound_goes_on_so(new_host: NewHost) -> None:
    """Sessions that were stored by an earlier engine in mid-turn among them."""
    host = new_host(rebase={"within_sealed_turns": False})
    use_model(host, GPT)
    ask(host)
    for number in range(8):
        sealed_step(host, f"s{number}", GPT)
    host.restart(rebase={"within_sealed_turns": True})
    host.wait(600)
    assert sealed_step(host, "more", GPT).decision == Decision()
    finish(host)
    ask(host)
    for number in range(8):
        sealed_step(host, f"t{number}", GPT)
    host.wait(600)
    assert sealed_step(host, "last", GPT).decision.reason == "cold"


def test_a_turn_that_was_begun_free_is_so_after_a_restart(host: Host) -> None:
    use_model(host, GPT)
    ask(host)
    for number in range(8):
        sealed_step(host, f"s{number}", GPT)
    host.restart()
    host.wait(600)
    assert folded(sealed_step(host, "last", GPT))


@pytest.mark.parametrize(
    ("api", "model", "binds"),
    [
        ("anthropic-messages", "anthropic/claude-opus-9", True),
        ("anthropic-messages", "some-gateway/any", True),
        ("bedrock-converse-stream", "amazon-bedrock/eu.anthropic.claude-9", True),
        ("bedrock-converse-stream", "amazon-bedrock/nova-9", True),
        ("openai-completions", "openrouter/anthropic/Claude-9", True),
        ("google-gemini-cli", "google-antigravity/claude-opus-9-thinking", True),
        ("openai-completions", "openrouter/google/gemini-9", False),
        ("openai-responses", "github-copilot/gpt-9", False),
        ("openai-codex-responses", "openai-codex/gpt-9", False),
        ("azure-openai-responses", "azure/gpt-9", False),
        ("google-generative-ai", "google/gemini-9", False),
        ("google-vertex", "google-vertex/gemini-9", False),
        ("google-gemini-cli", "google-gemini-cli/gemini-9", False),
        ("mistral-conversations", "mistral/any", True),
        ("", "", True),
    ],
)
def test_what_is_known_of_a_wire_and_a_model(api: str, model: str, binds: bool) -> None:
    assert binds_by_table(api, model) is binds


def test_every_row_says_how_that_is_known() -> None:
    assert all(len(row.source) > 40 for row in SEALINGS)
    free = [row for row in SEALINGS if not row.binds]
    assert all(row.apis and not row.models for row in free)
