"""The host's list changes otherwise than by growing: tree, fork, compaction, edits, resume."""

from __future__ import annotations

import pytest

from context.driver import Host
from context.messages import assistant, calls, lines, result, user
from context.scenes import ask, bash, context_tool, finish, use
from context.sent import Sent, as_bytes
from context.test_window import folded
from foredeck.model.call_values import Decision


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


def test_another_way_from_an_old_leaf_keeps_its_bytes(host: Host) -> None:
    sent = worked(host)
    host.back(len(sent[3].messages))
    finish(host, "Another answer.")
    assert begins_with(ask(host, "Another way."), sent[3])


def test_bytes_folded_on_another_branch_stand_on_this_one(host: Host) -> None:
    sent = worked(host, turns=2)
    leaf = host.leaf()
    for number in range(3):
        host.wait(600)
        finish(host)
        other = ask(host, f"Elsewhere {number}")
    assert folded(other) == [2, 6]
    host.go_to(leaf)
    host.wait(-1800)
    assert begins_with(ask(host, "Here."), sent[3])


def test_going_back_into_the_middle_of_a_turn_keeps_what_was_sent(host: Host) -> None:
    ask(host)
    host.add(
        assistant(calls("a", "bash", command="1"), calls("b", "bash", command="2")),
        result("a", "bash", lines(20, "a")),
        result("b", "bash", lines(20, "b")),
    )
    sent = host.call()
    host.back(3)
    finish(host, "Enough.")
    again = ask(host, "Only the first counts.")
    assert again.text(2) == sent.text(2)
    assert "No result" in again.text(3)


def test_sets_belong_to_the_branch(host: Host) -> None:
    ask(host)
    bash(host, "c1")
    leaf = host.leaf()
    context_tool(host, "p", "pin", "@3")
    pinned = host.leaf()
    host.go_to(leaf)
    bash(host, "c2")
    assert host.state.chat.branch.sets.pinned == set()
    host.go_to(pinned)
    bash(host, "c3")
    assert host.state.chat.branch.sets.pinned == {3}


def test_a_branch_survives_a_restart(host: Host) -> None:
    sent = worked(host)
    leaf = host.leaf()
    host.back(len(sent[1].messages))
    finish(host, "Elsewhere.")
    other = ask(host, "Elsewhere.")
    host.restart()
    finish(host)
    assert begins_with(ask(host), other)
    host.go_to(leaf)
    assert begins_with(ask(host, "Back."), sent[-1])


def test_going_back_to_the_beginning_starts_anew(host: Host) -> None:
    worked(host)
    host.back(0)
    sent = ask(host, "From the start.")
    assert len(sent.prompt) == 1


def test_a_summary_of_the_branch_that_was_left_is_one_more_message(host: Host) -> None:
    sent = worked(host)
    host.back(len(sent[1].messages))
    host.add({"role": "branchSummary", "summary": "It failed there.", "fromId": "e9"})
    assert begins_with(ask(host, "Go on."), sent[1])


# Fork and resume


def test_a_fork_begins_with_the_bytes_of_its_parent(host: Host) -> None:
    sent = worked(host)
    fork = host.fork("copy", len(sent[3].messages))
    finish(fork, "In the copy.")
    assert begins_with(ask(fork, "In the copy."), sent[3])
    fork.close()


def test_a_fork_has_the_handles_of_its_parent(host: Host) -> None:
    worked(host)
    before = {n: e.object for n, e in host.state.objects.index.entries.items()}
    fork = host.fork("copy")
    ask(fork, "In the copy.")
    index = {n: e.object for n, e in fork.state.objects.index.entries.items()}
    assert before.items() <= index.items()
    bash(fork, "new")
    assert fork.state.objects.index.entries[max(fork.state.objects.index.entries)].label == "new"
    fork.close()


def test_a_fork_keeps_what_was_pinned(host: Host) -> None:
    ask(host)
    bash(host, "c1")
    context_tool(host, "p", "pin", "@3")
    finish(host)
    fork = host.fork("copy")
    ask(fork)
    assert fork.state.chat.branch.sets.pinned == {3}
    fork.close()


def test_a_fork_of_a_fork_knows_them_both(host: Host) -> None:
    sent = worked(host)
    one = host.fork("one", len(sent[3].messages))
    finish(one, "One.")
    first = ask(one, "One.")
    two = one.fork("two", len(first.messages))
    finish(two, "Two.")
    assert begins_with(ask(two, "Two."), first)
    assert two.past.handles[3] == host.past.handles[3]
    two.close()


def test_a_fork_and_its_parent_go_their_own_ways(host: Host) -> None:
    sent = worked(host)
    fork = host.fork("copy")
    bash(fork, "in the copy")
    fork.close()
    finish(host)
    assert begins_with(ask(host, "In the parent."), sent[-1])
    bash(host, "in the parent")
    labels = [e.label for e in host.state.objects.index.entries.values()]
    assert "in the copy" not in labels


def test_a_resumed_session_is_warm_within_the_expiry(host: Host) -> None:
    sent = worked(host)
    host.restart()
    host.wait(200)
    again = ask(host)
    assert again.decision == Decision()
    assert begins_with(again, sent[-1])


def test_a_session_from_before_foredeck_goes_on_as_the_host_had_it(host: Host) -> None:
    host.add(user("Long ago."), assistant(calls("c", "bash", command="x")))
    host.add(result("c", "bash", lines(20)), assistant("Done."), user("Now."))
    sent = host.call()
    assert sent.parts[2] == [sent.messages[2]]
    assert folded(sent) == []
    for number in range(3):
        finish(host)
        host.wait(600)
        sent = ask(host, f"Turn {number}")
    assert folded(sent) == [2]


# Compaction


def test_a_compacted_list_is_valid_and_loses_nothing(host: Host) -> None:
    worked(host)
    host.compact("What was done.", keep=3)
    sent = ask(host)
    assert sent.prompt[0]["role"] == "compactionSummary"
    assert context_tool(host, "t", "activate", "@3").text(-2).endswith(lines(20, "output of c0"))


def test_what_the_compaction_kept_stays_in_view(host: Host) -> None:
    worked(host)
    host.compact("What was done.", keep=3)
    sent = ask(host)
    assert lines(20, "output of c2") in sent.text(2)


def test_what_was_put_away_stays_so_through_a_compaction(host: Host) -> None:
    worked(host)
    ask(host)
    context_tool(host, "d", "deactivate", "@5")
    finish(host)
    host.compact("What was done.", keep=8)
    sent = ask(host)
    index = next(i for i, m in enumerate(sent.messages) if m.get("toolCallId") == "c2")
    assert sent.text(index).startswith("@5 folded: ")


def test_pins_survive_a_compaction(host: Host) -> None:
    worked(host)
    ask(host)
    context_tool(host, "p", "pin", "@5")
    finish(host)
    host.compact("What was done.", keep=6)
    ask(host)
    assert host.state.chat.branch.sets.pins == {5}


def test_a_compaction_in_mid_turn_keeps_results_in_flight(host: Host) -> None:
    worked(host)
    ask(host)
    host.add(assistant(calls("x", "bash", command="x")), result("x", "bash", lines(20, "x")))
    host.compact("What was done.", keep=2)
    sent = host.call()
    assert lines(20, "x") in sent.text(2)


def test_after_a_compaction_the_old_branch_can_still_be_taken_up(host: Host) -> None:
    sent = worked(host)
    leaf = host.leaf()
    host.compact("What was done.", keep=1)
    ask(host)
    host.go_to(leaf)
    host.wait(-10)
    assert begins_with(ask(host, "Undone."), sent[-1])


# Edits


def test_an_edited_message_changes_nothing_before_it(host: Host) -> None:
    sent = worked(host)
    host.change(4, content="What I meant to ask.")
    after = ask(host)
    assert as_bytes(after.prompt[:4]) == as_bytes(sent[-1].prompt[:4])
    assert after.text(4) == "What I meant to ask."


def test_what_stands_after_an_edit_is_in_view_as_it_was(host: Host) -> None:
    worked(host, turns=2)
    host.change(0, content="What I meant to ask.")
    sent = ask(host)
    assert folded(sent) == []
    assert lines(20, "output of c1") in sent.text(6)


def test_an_edit_is_a_free_moment_for_what_stands_after_it(host: Host) -> None:
    ask(host)
    for number in range(7):
        bash(host, f"c{number}")
    finish(host)
    warm = ask(host)
    assert folded(warm) == []
    host.change(1, content=[{"type": "text", "text": "x"}, *host.messages[1]["content"]])
    finish(host)
    sent = ask(host)
    assert sent.decision.reason == "history"
    assert folded(sent) == [2, 4]


def test_an_edit_folds_nothing_that_stands_before_it(host: Host) -> None:
    ask(host)
    for number in range(7):
        bash(host, f"c{number}")
    host.change(13, content=[{"type": "text", "text": "x"}, *host.messages[13]["content"]])
    finish(host)
    assert folded(ask(host)) == []


def test_an_edited_result_is_shown_as_edited(host: Host) -> None:
    ask(host)
    bash(host, "c1")
    finish(host)
    host.change(2, content=[{"type": "text", "text": "(removed by the user)"}])
    assert ask(host).text(2) == "(removed by the user)"


def test_a_failed_answer_that_the_host_leaves_out_later_changes_nothing(host: Host) -> None:
    sent = worked(host)
    host.add(user("Again."))
    first = host.call()
    host.add(assistant(stop="error", errorMessage="overloaded"))
    host.back(len(first.messages))
    again = host.call()
    assert (again.call, as_bytes(again.prompt)) == (first.call, as_bytes(first.prompt))
    assert begins_with(again, sent[-1])


def test_a_message_in_the_middle_that_vanishes_changes_nothing_before_it(host: Host) -> None:
    sent = worked(host)
    del host.messages[5:7], host.entries[5:7]
    after = ask(host)
    assert as_bytes(after.prompt[:5]) == as_bytes(sent[-1].prompt[:5])


# Models


def test_another_model_sends_the_same_bytes_where_nothing_can_go(host: Host) -> None:
    sent = worked(host, turns=2)
    host.model = {**(host.model or {}), "id": "m2"}
    assert begins_with(ask(host), sent[-1])


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


def test_a_file_read_on_two_branches_is_one_object(host: Host) -> None:
    ask(host)
    leaf = host.leaf()
    use(host, "r1", "read", lines(20), path="a.py")
    host.go_to(leaf)
    sent = use(host, "r2", "read", lines(20), path="a.py")
    assert sent.text(2) == f"@3\n{lines(20)}"
