"""Sealed reasoning that binds what stands before it, and such that does not."""

from __future__ import annotations

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import assistant, calls, lines, result, thinking
from context.scenes import ask, finish, go_on
from context.sent import Sent
from context.test_window import folded
from foredeck.cli.stored_checks import SEALS, check_stored
from foredeck.config import Config
from foredeck.context.calls.feedback import has_refused, is_about_seals
from foredeck.context.plan.wires import binds_by_table
from foredeck.finding import Finding
from foredeck.model.call_values import Decision

GPT = {"api": "openai-responses", "provider": "openai", "model": "gpt-6.1"}
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


def sealed_steps(host: Host, maker: dict[str, str], prefix: str = "s") -> None:
    """So many of them that older ones may go."""
    for number in range(8):
        sealed_step(host, f"{prefix}{number}", maker)


def long_turn(host: Host, maker: dict[str, str]) -> Sent:
    """A turn of sealed steps, after a pause in the middle of it."""
    use_model(host, maker)
    ask(host)
    sealed_steps(host, maker)
    host.wait(2400)
    return sealed_step(host, "last", maker)


@pytest.mark.parametrize("maker", [GPT, GEMINI], ids=["gpt", "gemini"])
def test_where_nothing_says_that_it_binds_a_turn_folds_before_it_ends(
    host: Host, maker: dict[str, str]
) -> None:
    sent = long_turn(host, maker)
    assert (sent.decision.kind, sent.decision.reason) == ("rebase", "cold")
    assert folded(sent) == [2, 4, 6, 8]


def test_a_router_that_carries_claude_keeps_all_before_its_reasoning(host: Host) -> None:
    assert long_turn(host, ROUTED).decision == Decision()


def test_a_wire_that_nobody_knows_keeps_all_before_its_reasoning(host: Host) -> None:
    assert long_turn(host, {**GPT, "api": "a-wire-of-my-own"}).decision == Decision()


def test_what_another_model_has_sealed_in_the_same_turn_binds_still(host: Host) -> None:
    use_model(host, GPT)
    ask(host)
    sealed_steps(host, ROUTED)
    host.wait(2400)
    assert sealed_step(host, "last", ROUTED).decision == Decision()


def test_it_can_be_switched_off(new_host: NewHost) -> None:
    host = new_host(rebase={"within_sealed_turns": False})
    sent = long_turn(host, GPT)
    assert sent.decision == Decision()
    assert "reasoning" not in sent.record.fields["state"]


def test_a_turn_that_was_begun_bound_goes_on_so(new_host: NewHost) -> None:
    """Sessions that were stored by an earlier engine in mid-turn among them."""
    host = new_host(rebase={"within_sealed_turns": False})
    use_model(host, GPT)
    ask(host)
    sealed_steps(host, GPT)
    host.restart(rebase={"within_sealed_turns": True})
    host.wait(2400)
    assert sealed_step(host, "more", GPT).decision == Decision()
    go_on(host)
    sealed_steps(host, GPT, "t")
    host.wait(2400)
    assert sealed_step(host, "last", GPT).decision.reason == "cold"


def test_a_turn_that_was_begun_free_is_so_after_a_restart(host: Host) -> None:
    use_model(host, GPT)
    ask(host)
    sealed_steps(host, GPT)
    host.restart()
    host.wait(2400)
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
        ("openai-responses", "github-copilot/gpt-6.1", False),
        ("openai-codex-responses", "openai-codex/gpt-6.1", False),
        ("azure-openai-responses", "azure/gpt-6.1", False),
        ("google-generative-ai", "google/gemini-9", False),
        ("google-vertex", "google-vertex/gemini-9", False),
        ("google-gemini-cli", "google-gemini-cli/gemini-9", False),
        ("mistral-conversations", "mistral/any", True),
        ("", "", True),
    ],
)
def test_what_is_known_of_a_wire_and_a_model(api: str, model: str, binds: bool) -> None:
    assert binds_by_table(api, model) is binds


# Refusals

BOUND = (
    "400 The encrypted content for item rs_1 could not be verified. Reason: Encrypted content "
    "could not be decrypted or parsed."
)


OF_SEALS = [
    BOUND,
    "400 messages.3: `thinking` block is bound to a prefix that has changed since",
    '{"error": {"code": 400, "message": "Corrupted thought signature.", "status": "INVALID"}}',
    "400 Thought signature is not valid",
    "400 reasoning item rs_1 does not match the input that precedes it",
]
OTHERS = [
    "400 Function call is missing a thought_signature in functionCall parts.",
    "400 Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    "400 Encrypted content organization_id did not match the target organization.",
    "404 Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
    "400 Unsupported value: 'reasoning.effort' does not support 'minimal' with this model.",
    "400 thinking.budget_tokens must be less than max_tokens",
    "429 rate limit reached for reasoning models",
    "400 Thought signature was made by another model",
    "400 prompt is too long: 200123 tokens > 200000 maximum",
    "500 Internal server error",
    "",
]


def test_words_that_may_mean_that_changed_bytes_were_the_reason() -> None:
    assert [message for message in OF_SEALS + OTHERS if is_about_seals(message)] == OF_SEALS


def told(host: Host) -> list[str]:
    """What the user will be told with the next answer, of models that refuse."""
    return [text for text in host.state.inbox.user_messages if "openai/gpt-6.1" in text]


def test_a_refusal_brings_the_old_bytes_back_and_is_remembered(host: Host) -> None:
    refused = long_turn(host, GPT)
    before = host.past.sent[-2]
    assert folded(refused)
    assert host.refuse(BOUND)
    (word,) = told(host)
    assert "refused" in word
    again = host.call()
    assert told(host) == []
    assert folded(again) == []
    assert again.prompt[: len(before.prompt)] == before.prompt
    assert again.decision == Decision()
    assert again.record.parent == before.record.id
    host.wait(2400)
    assert sealed_step(host, "more", GPT).decision == Decision()


def test_it_is_remembered_after_a_restart_and_in_other_sessions(host: Host) -> None:
    long_turn(host, GPT)
    assert host.refuse(BOUND)
    again = host.call()
    host.restart()
    host.wait(2400)
    assert sealed_step(host, "more", GPT).decision == Decision()
    assert host.past.sent[-1].prompt[: len(again.prompt)] == again.prompt
    host.close()
    other = Host(host.home, session="other")
    assert long_turn(other, GPT).decision == Decision()
    other.close()
    third = Host(host.home, session="third")
    assert folded(long_turn(third, GEMINI)), "it is remembered of the one model"
    third.close()


def test_the_refused_call_is_none_that_the_provider_has_seen(host: Host) -> None:
    """Even where the engine dies before the call is made again."""
    refused = long_turn(host, GPT)
    assert host.refuse(BOUND)
    again = host.call()
    host.restart()
    shown = host.shown(again.record.ordinal)
    assert shown.messages
    assert sealed_step(host, "more", GPT).record.parent == again.record.id
    assert refused.record.id in host.state.chat.log.unsent


@pytest.mark.parametrize(
    "message", ["400 Function call is missing a thought_signature.", "500 Internal server error"]
)
def test_a_refusal_of_another_cause_teaches_nothing(host: Host, message: str) -> None:
    refused = long_turn(host, GPT)
    assert not host.refuse(message)
    host.past.sent.append(refused)
    assert told(host) == []
    assert folded(sealed_step(host, "more", GPT)) == folded(refused)


def test_a_refusal_of_a_prompt_that_had_only_grown_teaches_nothing(host: Host) -> None:
    use_model(host, GPT)
    ask(host)
    sealed_step(host, "s1", GPT)
    last = sealed_step(host, "s2", GPT)
    assert not host.refuse(BOUND)
    host.past.sent.append(last)
    assert not has_refused(host.state.objects.workspace, "openai/gpt-6.1")


def test_where_the_old_bytes_are_refused_too_that_was_not_the_reason(host: Host) -> None:
    long_turn(host, GPT)
    assert host.refuse(BOUND)
    again = host.call()
    assert not host.refuse(BOUND)
    (word,) = told(host)
    assert "not the reason" in word
    assert not has_refused(host.state.objects.workspace, "openai/gpt-6.1")
    host.past.sent.append(again)
    go_on(host)


def test_a_file_change_that_only_the_refused_prompt_told_is_told_again(host: Host) -> None:
    use_model(host, GPT)
    ask(host)
    sealed_steps(host, GPT)
    host.wait(2400)
    host.state.inbox.notices.add(1, "deleted")
    sealed_step(host, "last", GPT)
    assert not host.state.inbox.notices.changes
    assert host.refuse(BOUND)
    assert host.state.inbox.notices.take() == {1: "deleted"}


def seals_found(host: Host, *, forget: bool = False) -> list[Finding]:
    found = check_stored(Config(home=host.home), forget_refusals=forget)
    return [finding for finding in found if finding.name == SEALS]


def test_doctor_shows_it_and_has_it_tried_again(host: Host) -> None:
    assert seals_found(host) == []
    long_turn(host, GPT)
    assert host.refuse(BOUND)
    host.call()
    (shown,) = seals_found(host)
    assert (shown.status, "openai/gpt-6.1" in shown.text) == ("ok", True)
    assert "--forget-refusals" in shown.advice
    (done,) = seals_found(host, forget=True)
    assert "openai/gpt-6.1" in done.text
    assert seals_found(host) == []
    (none,) = seals_found(host, forget=True)
    assert "no model" in none.text
    host.restart()
    finish(host)
    assert folded(long_turn(host, GPT)), "in the next turn"
