"""The host's list changes otherwise than by growing: tree, fork, compaction, edits, resume."""

from __future__ import annotations

import pytest

from context.driver import Host
from context.messages import assistant, calls, lines, result
from context.scenes import ask, bash, context_tool, finish, go_on
from context.sent import Sent, as_bytes
from foredeck.context.state.call_log import CallLog
from foredeck.model.calls import CallRecord


def worked(host: Host, turns: int = 3) -> list[Sent]:
    """A few turns of one command each, with the prompts that went out."""
    sent = []
    for number in range(turns):
        sent += [ask(host, f"Turn {number}"), bash(host, f"c{number}")]
        finish(host)
    return sent


def begins_with(sent: Sent, before: Sent) -> bool:
    length = len(before.prompt)
    return as_bytes(sent.prompt[:length]) == as_bytes(before.prompt)


# /tree


def test_going_back_and_forth_gives_the_prompts_that_stood_there(host: Host) -> None:
    sent = worked(host)
    end = host.leaf()
    for old in [*reversed(sent), *sent]:
        host.go_to(end)
        host.back(len(old.messages))
        again = host.call()
        assert as_bytes(again.prompt) == as_bytes(old.prompt)
        assert again.call == old.call


# Fork and resume


def test_a_fork_and_its_parent_go_their_own_ways(host: Host) -> None:
    sent = worked(host)
    fork = host.fork("copy")
    bash(fork, "in the copy")
    fork.close()
    assert begins_with(go_on(host, "In the parent."), sent[-1])
    bash(host, "in the parent")
    labels = [e.label for e in host.state.objects.index.entries.values()]
    assert "in the copy" not in labels


# Compaction


def test_pins_survive_a_compaction(host: Host) -> None:
    worked(host)
    ask(host)
    context_tool(host, "p", "pin", "@5")
    finish(host)
    host.compact("What was done.", keep=6)
    ask(host)
    assert host.state.chat.branch.sets.pins == {5}


# Edits


# Models


def test_the_same_list_for_another_model_is_a_call_of_its_own(host: Host) -> None:
    first = ask(host)
    host.model = {**(host.model or {}), "id": "m2"}
    second = host.call()
    assert (first.call, second.call) == (1, 2)
    assert second.record.model.name == "anthropic/m2"


# Repeats


@pytest.mark.parametrize("restart", [False, True], ids=["steady", "restarted"])
def test_two_equal_messages_are_two(host: Host, restart: bool) -> None:
    ask(host)
    same = {"timestamp": 5}
    for _ in range(2):
        host.add(assistant(calls("call_0", "bash", command="x"), **same))
        host.add(result("call_0", "bash", lines(20), **same))
        if restart:
            host.restart()
        sent = host.call()
    assert lines(20) in sent.text(2)
    assert sent.text(4) == "Unchanged: the same as @3 above."


def test_calls_in_a_circle_are_no_chain() -> None:
    # As an import may bring them.
    parents = {"call:s:1": "call:s:2", "call:s:2": "call:s:1"}
    records = {id: CallRecord({"id": id, "parent": parent}) for id, parent in parents.items()}
    assert CallLog().chain("call:s:1", records.get) == []
