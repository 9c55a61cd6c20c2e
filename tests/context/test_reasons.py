"""What the user is told of the prompt: `/foredeck why`, `/foredeck cost` and the status line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import (
    ask,
    bash,
    command_text,
    context_tool,
    go_on,
    later,
    old_output,
    outputs,
)
from context.working import Work
from foredeck.errors import ToolError

COST = {"input": 3.0, "output": 15.0, "cacheRead": 0.3, "cacheWrite": 3.75}


def paying(new_host: NewHost, **settings: object) -> Host:
    """A session with a rebase that pays."""
    host = new_host(rebase={"carrying_factor": 0, "guard": 10}, **settings)
    host.model = {**(host.model or {}), "api": "openai-responses", "cost": COST}
    ask(host)
    bash(host, "big", lines(400, "big"))
    outputs(host, 7)
    return host


def test_before_the_first_call(host: Host) -> None:
    assert command_text(host, "why") == "No call has been made yet."
    assert "No call has gone out with foredeck yet." in command_text(host, "cost")


def test_of_another_engine_before_a_call(host: Host) -> None:
    assert command_text(host, "trace", "big") == "No call has been made yet."
    ask(host)
    host.restart()
    known_again = "What the model sees is known again once the next call has gone out."
    for name, args in (("why", ""), ("trace", "big"), ("view", "")):
        assert command_text(host, name, args).startswith(known_again)


def test_why_alone_tells_the_newest_call_and_rebase(
    new_host: NewHost, snapshot: SnapshotAssertion
) -> None:
    host = paying(new_host, seed_window={"per_turn": 1, "turns": 1}, policy="seed-window")
    assert command_text(host, "why") == snapshot
    go_on(host, "And?", answer="Yes.")
    assert command_text(host, "why") == snapshot


@pytest.mark.parametrize(
    ("wait_s", "model", "reason"), [(301, "m1", "expired"), (0, "m2", "another model was chosen")]
)
def test_free_rebases_say_why_they_are_free(
    new_host: NewHost, wait_s: int, model: str, reason: str
) -> None:
    host = new_host(seed_window={"per_turn": 1, "turns": 1}, policy="seed-window").begin()
    old_output(host)
    bash(host, "x")
    bash(host, "y")
    host.wait(wait_s)
    host.model = {**(host.model or {}), "id": model}
    bash(host, "z")
    assert reason in command_text(host, "why")


def test_why_names_the_rule_that_holds_for_an_object(
    new_host: NewHost, snapshot: SnapshotAssertion
) -> None:
    host = new_host(policy="seed-window", seed_window={"per_turn": 1, "turns": 1}).begin()
    bash(host, "one")
    assert "It came with the newest call" in command_text(host, "why", "@3")
    bash(host, "two")
    bash(host, "three")
    context_tool(host, "p", "pin", "@4")
    go_on(host)
    assert {handle: command_text(host, "why", handle) for handle in ("@3", "@4", "@5")} == snapshot
    later(host, seconds=301)
    assert command_text(host, "why", "@3") == snapshot


def test_why_names_the_one_rule_and_what_it_would_have_cost_to_keep(host: Host) -> None:
    host.model = {**(host.model or {}), "cost": COST}
    ask(host)
    bash(host, "one", lines(200, "one"))
    bash(host, "two", lines(200, "two"))
    context_tool(host, "d", "deactivate", "@3")
    by_model = f"deactivated by the model at call {host.past.sent[-1].call}"
    command_text(host, "fold", "@4")
    assert "It was deactivated since the last call" in command_text(host, "why", "@4")
    go_on(host)
    by_user = f"deactivated by you at call {host.past.sent[-1].call}"
    for name, rule in (("@3", by_model), ("@4", by_user)):
        said = command_text(host, "why", name)
        assert rule in said
        assert "policy" not in said
        assert "It folds when the prompt is next rewritten from message" in said
    later(host, seconds=301)
    said = command_text(host, "why", "@3")
    assert f"It was {by_model}, and folded at call " in said
    assert re.search(r"Keeping its \S+ tokens for 1 call would have cost \$0\.\d+\. activate", said)


@pytest.mark.parametrize(("name", "what"), [("@1", "system_prompt"), ("@2", "chat")])
def test_the_system_prompt_and_the_chat_are_always_in_view(
    host: Host, name: str, what: str
) -> None:
    ask(host)
    said = f"{name} is always in view: it is the {what} of this session."
    assert command_text(host, "why", name) == said
    for verb in ("pin", "fold"):
        with pytest.raises(ToolError, match=f"{name} is locked: the {what} is always in view."):
            command_text(host, verb, name)


def test_a_file_that_was_only_listed_can_be_brought_in(new_host: NewHost, tmp_path: Path) -> None:
    work = Work(new_host(cwd=str(tmp_path.resolve()), disk=True))
    work.file("a.py", lines(30))
    ask(work.host)
    work.run("ls", "a.py", path=".")
    said = command_text(work.host, "why", "a.py")
    assert said.endswith("It was never in this branch's prompt. activate @3 brings it in.")


def test_what_was_never_in_the_prompt_and_what_cannot_be(host: Host) -> None:
    ask(host)
    context_tool(host, "t", "activate", "https://example.org/page")
    (pointer,) = [e for e in host.state.objects.index.entries.values() if e.type == "pointer"]
    said = command_text(host, "why", f"@{pointer.ordinal}")
    assert "activate" not in said
    assert said.endswith(
        "It was never in this branch's prompt, and has no content to show: it is only pointed to, "
        "and nothing is fetched; read it with a tool of yours."
    )


def test_why_tells_when_an_adaptive_policy_saw_it_used(new_host: NewHost) -> None:
    host = new_host(policy="adaptive").begin()
    bash(host, "one")
    bash(host, "two")
    go_on(host)
    assert command_text(host, "why", "@3").endswith(
        "Policy adaptive keeps it, last used 2 calls ago."
    )


def test_why_names_the_policy_and_the_fold_behind_a_run(new_host: NewHost) -> None:
    host = new_host(policy="adaptive").begin()
    for number in range(20):
        bash(host, f"c{number}", lines(200, f"c{number}"))
    since = re.search(r"since call (\d+) of", command_text(host, "why", "@3"))
    host.wait(600)
    call = bash(host, "last").call
    early, late = (command_text(host, "why", name) for name in ("@3", "@15"))
    policy = "It was given up by policy adaptive"
    assert f"{policy} at call {since[1]}, and folded at call {call} because" in early
    assert f"{policy}, and folded at call {call} because" in late
    traced = command_text(host, "trace", "c0 100: some text")
    assert f"{call}: folded; message 3: result of bash run c0 (@3)" in traced
    assert f"policy adaptive had given up the newest of these at call {since[1]}" in traced
    for number in range(10):
        bash(host, f"more {number}")
    host.wait(600)
    assert bash(host, "after").decision.call_groups
    said = command_text(host, "why", "@15")
    assert f"{policy}, and folded at call {call} because" in said


def test_the_next_rebase_is_foreseen_by_what_may_go(new_host: NewHost) -> None:
    """The prompt grows meanwhile, so it may come later, but not earlier."""
    window = {"per_turn": 1, "turns": 1}
    host = new_host(policy="seed-window", seed_window=window, rebase={"guard": 10})
    host.model = {**(host.model or {}), "api": "openai-responses", "cost": COST}
    ask(host)
    bash(host, "big", lines(200, "big"))
    bash(host, "small")
    bash(host, "small too")
    record = host.state.chat.branch_record
    wait = record.stats.rebase_in
    assert re.search(rf"pays in {wait} calls? at the earliest", command_text(host, "why"))
    kinds = []
    while "rebase" not in kinds and len(kinds) < 10 * wait:
        kinds.append(go_on(host, "And?", answer="Yes.").decision.kind)
    assert "rebase" in kinds
    assert len(kinds) >= wait
