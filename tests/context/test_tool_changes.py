"""Tools and instructions that change in mid-session: what the provider's cache then holds."""

from __future__ import annotations

from typing import Any

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import ask, bash, use
from context.test_account import newest
from foredeck.context.state.request import InlineChanges, PromptFrame
from foredeck.hosts.pi import to_model

SYSTEM = "supportsMidConvoSystemMessages"
INLINE = {SYSTEM: True, "supportsMidConvoToolChanges": True}
"""What Pi's record of a model says that takes all changes in the chat."""


def tool(name: str, description: str = "") -> dict[str, Any]:
    return {"name": name, "description": description, "parameters": {"type": "object"}}


def system(content: str, **changes: Any) -> dict[str, Any]:
    return {"role": "system", "content": content, **changes}


FIRST = system("You are an agent.", toolsAdded=[tool("read"), tool("bash")])
MORE = system("", toolsAdded=[tool("late")])
ANEW = system("", toolsAdded=[tool("bash", "Another one.")], toolsRemoved=[{"name": "bash"}])
LESS = system("", toolsRemoved=[{"name": "bash"}])
SAID = system("From now on speak French.")


def frame(*messages: dict[str, Any]) -> PromptFrame:
    """As the host sends it: the tools beside the messages are those that are active now."""
    tools: dict[str, Any] = {}
    for message in messages:
        for each in message.get("toolsRemoved", ()):
            tools.pop(each["name"], None)
        tools |= {each["name"]: each for each in message.get("toolsAdded", ())}
    return PromptFrame(list(messages), list(tools.values()))


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        (MORE, {"additions", "all"}),
        (ANEW, {"all"}),
        (LESS, {"all"}),
        (SAID, {"text", "additions", "all"}),
    ],
)
def test_what_goes_out_before_the_chat_stays_where_a_model_takes_the_change_in_it(
    change: dict[str, Any], stays: set[InlineChanges]
) -> None:
    kinds: tuple[InlineChanges, ...] = ("none", "text", "additions", "all")
    before, after = frame(FIRST), frame(FIRST, change)
    assert {kind for kind in kinds if before.before_chat(kind) == after.before_chat(kind)} == stays


def test_a_tool_that_comes_after_one_went_is_added_at_its_place() -> None:
    before, after = frame(FIRST, LESS), frame(FIRST, LESS, MORE)
    assert before.before_chat("additions") == after.before_chat("additions")
    again = frame(FIRST, LESS, MORE, ANEW)
    assert after.before_chat("additions") != again.before_chat("additions")


def test_a_host_that_names_no_tools_in_its_messages_sends_them_before_the_chat() -> None:
    plain = system("You are an agent.")
    before, after = PromptFrame([plain], [tool("read")]), PromptFrame([plain], [tool("bash")])
    assert before.before_chat("all") != after.before_chat("all")


@pytest.mark.parametrize(
    ("api", "compat", "inline"),
    [
        ("anthropic-messages", INLINE, "all"),
        ("anthropic-messages", {SYSTEM: True}, "text"),
        ("anthropic-messages", {"supportsMidConvoToolChanges": True}, "none"),
        ("openai-responses", {SYSTEM: True, "supportsAdditionalTools": True}, "all"),
        ("openai-codex-responses", {SYSTEM: True, "supportsToolSearch": True}, "additions"),
        ("azure-openai-responses", {"supportsToolSearch": True}, "none"),
        ("openai-completions", {SYSTEM: True, "supportsMidConvoToolAdditions": True}, "additions"),
        ("mistral-conversations", {SYSTEM: True}, "text"),
        ("google-generative-ai", {SYSTEM: True}, "none"),
        ("anthropic-messages", None, "none"),
    ],
)
def test_a_models_record_says_what_it_takes_in_the_chat(
    api: str, compat: Any, inline: InlineChanges
) -> None:
    model = to_model({"provider": "p", "id": "m", "api": api, "compat": compat})
    assert model.inline == inline


def working(new_host: NewHost, compat: dict[str, bool]) -> Host:
    """A session with output that may fold, but whose folding does not pay yet."""
    host = new_host(adaptive={"patience": 1}, rebase={"carrying_factor": 1000})
    host.model = {**(host.model or {}), "api": "anthropic-messages", "compat": compat}
    host.system, host.tools = [FIRST], [*FIRST["toolsAdded"]]
    ask(host)
    for number in range(8):
        bash(host, f"s{number}", lines(60, f"output {number}"))
    return host


def load_late(host: Host) -> None:
    """A tool comes, and the model is called with the result of what has brought it."""
    host.system, host.tools = [FIRST, MORE], [*FIRST["toolsAdded"], *MORE["toolsAdded"]]
    use(host, "load", "tool_search", "loaded late")


def test_a_tool_that_comes_in_the_chat_leaves_the_cache_as_it_is(new_host: NewHost) -> None:
    host = working(new_host, INLINE)
    load_late(host)
    assert not newest(host)
    record = host.state.chat.newest_record
    assert record.decision.kind == "append"
    assert record.cache.hit == record.length - 2


def test_a_tool_that_comes_before_the_chat_makes_rewriting_free(new_host: NewHost) -> None:
    host = working(new_host, {})
    load_late(host)
    assert list(newest(host)) == ["system prompt or tools"]
    record = host.state.chat.newest_record
    assert (record.decision.kind, record.decision.reason) == ("rebase", "system")
    assert record.cache.read == 0
    # The same tools again: what was sent last is cached.
    bash(host, "after")
    record = host.state.chat.newest_record
    assert record.decision.kind == "append"
    assert record.cache.read
