"""A fork's chat holds the turns that it began with, wherever these were made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from context.driver import Host
from context.scenes import ask, bash, context_tool, finish, go_on
from context.sent import Sent
from context.test_compacting import compact
from foredeck.config import Config
from foredeck.context.state.handles import asked_graph
from foredeck.context.state.stored_chat import chat_fields, inherited_turns, render_chat
from foredeck.errors import ToolError
from foredeck.model.documents import chat_id, user_object_id
from foredeck.model.identity import hash_text
from foredeck.notes.expanding import expand
from foredeck.store.erasing import erase, erasure_of, plan_forgetting
from foredeck.store.protocol import Head
from foredeck.store.store import open_sqlite


def turn(host: Host, name: str) -> None:
    """The user asks, a command runs, the model answers."""
    ask(host, f"Ask {name}.")
    bash(host, name)
    finish(host, f"Answer {name}.")


def chat(host: Host) -> dict[str, Any]:
    """The chat as `foredeck cat chat:SESSION --json` gives it."""
    head = host.store.head(chat_id(host.session))
    return chat_fields(host.store, host.session, head.fields["turn_count"])


def text(host: Host) -> str:
    """The chat as `foredeck cat chat:SESSION` prints it."""
    head = host.store.head(chat_id(host.session))
    return render_chat(host.store, host.session, head.fields["turn_count"])


def asked(host: Host) -> list[str]:
    """What the user asked, by the turns of the chat."""
    return [found["user"]["content"] for found in chat(host)["turns"] if found["user"]]


@pytest.fixture
def parent(host: Host) -> Host:
    """A session of three turns."""
    for name in ("one", "two", "three"):
        turn(host, name)
    ask(host, "And then?")
    finish(host, "Nothing.")
    return host


def test_a_field_of_a_chat_is_expanded_with_what_a_fork_inherited(parent: Host) -> None:
    pasted = "a line of a log\n" * 600
    ask(parent, pasted)
    go_on(parent, answer="I see.")
    fork = parent.fork("copy", 4)
    turn(fork, "four")
    ask(fork)

    def inherited(session: str) -> Sequence[Head]:
        return inherited_turns(parent.store, session).turns

    def found(host: Host, field: str) -> list[str]:
        with asked_graph(host.state.objects) as graph:
            ids = [chat_id(host.session)]
            expanded = expand(host.store, graph, ids, budget=0, field=field, inherited=inherited)
        return [item.node.id for item in expanded]

    assert found(fork, "toolcall_ids") == ["one", "four"]
    assert found(parent, "toolcall_ids[1]") == ["two"]
    assert found(parent, "turns[3].toolcall_ids") == ["two"]
    assert found(parent, "turns[8].user") == [user_object_id(hash_text(pasted))]
    assert found(parent, "turns[8]") == [user_object_id(hash_text(pasted))]
    for unknown in ("turns[99]", "toolcall_ids[7]", "toolcalls", "turns[1].tools"):
        with pytest.raises(ToolError, match="has no "):
            found(parent, unknown)
    with pytest.raises(ToolError, match=r"has no field 'said'.* And it has toolcall_ids, turns"):
        found(parent, "said")


def test_a_fork_holds_the_turns_up_to_where_it_left(parent: Host) -> None:
    fork = parent.fork("copy", 8)
    turn(fork, "four")
    ask(fork)
    found = chat(fork)
    assert asked(fork) == ["Ask one.", "Ask two.", "Ask four."]
    assert [found["user_turn"] for found in found["turns"]] == [1, 1, 2, 2, 3, 3]
    assert (found["turn_count"], found["inherited"], found["missing"]) == (6, 4, None)
    assert found["toolcall_refs"] == ["one", "two", "four"]
    assert text(fork).index("Answer two.") < text(fork).index("Ask four.")
    assert "three" not in text(fork)
    fork.close()


def test_a_fork_of_a_fork_holds_those_of_both(parent: Host) -> None:
    fork = parent.fork("copy", 8)
    turn(fork, "four")
    ask(fork)
    second = fork.fork("second", len(fork.messages) - 1)
    turn(second, "five")
    ask(second)
    assert asked(second) == ["Ask one.", "Ask two.", "Ask four.", "Ask five."]
    made_in = [found["id"].split(":")[1] for found in chat(second)["turns"]]
    assert made_in == [*["s"] * 4, *["copy"] * 2, *["second"] * 2]
    second.close()


def test_a_branch_that_was_left_before_is_no_part_of_a_fork(parent: Host) -> None:
    parent.back(8)
    turn(parent, "other")
    ask(parent)
    fork = parent.fork("copy")
    finish(fork)
    turn(fork, "last")
    assert asked(fork) == ["Ask one.", "Ask two.", "Ask other.", "Go on.", "Ask last."]
    assert "three" not in text(fork)
    fork.close()


def test_a_fork_after_a_compaction_holds_what_that_covers(parent: Host) -> None:
    parent.compact(compact(parent, "overflow")["summary"], keep=2)
    turn(parent, "four")
    ask(parent)
    fork = parent.fork("copy")
    finish(fork)
    turn(fork, "five")
    asks = ["Ask one.", "Ask two.", "Ask three.", "And then?", "Ask four.", "Go on.", "Ask five."]
    assert asked(fork) == asks
    fork.close()


def test_a_fork_whose_parent_was_forgotten_says_so(parent: Host) -> None:
    fork = parent.fork("copy", 8)
    turn(fork, "four")
    ask(fork)
    fork.close()
    config = Config(home=fork.home)
    store = open_sqlite(fork.home / "foredeck.db")
    erase(config, store, erasure_of(plan_forgetting(store, ["s"])))
    store.close()
    assert text(fork).splitlines()[0] == (
        "--- the turns before are those of session s, which was forgotten"
    )
    assert (chat(fork)["missing"], chat(fork)["inherited"]) == ("s", 0)
    assert asked(fork) == ["Ask four."]
    fork.close()


@pytest.mark.parametrize("layout", ["anchored", "pools"])
def test_turns_of_the_chat_can_be_activated_word_for_word(parent: Host, layout: str) -> None:
    parent.restart(layout=layout)
    fork = parent.fork("copy", 8)
    turn(fork, "four")
    ask(fork)
    shown = context_tool(fork, "t", "activate", "chat:copy turns 2-3")
    told = shown_now(shown)
    assert "--- turn 2" in told
    assert "Ask two.\n" in told
    assert "Answer four." in told
    assert "Ask one." not in told
    fork.close()


def shown_now(sent: Sent) -> str:
    """The newest result as it goes out, with the active content behind it."""
    return "".join(map(sent.text, range(len(sent.messages) - 1, len(sent.parts))))


def test_turns_that_the_chat_does_not_have_are_refused(parent: Host) -> None:
    ask(parent)
    with pytest.raises(ToolError, match="There are no turns 8-9 in it: it holds turns 1 to 5"):
        parent.tool("t", "activate", id="chat:s turns 8-9")


def test_an_engine_that_has_just_been_started_asks_for_patience(parent: Host) -> None:
    ask(parent)
    parent.restart()
    with pytest.raises(ToolError, match="from the next model call on: try again"):
        parent.tool("t", "activate", id="@2 turns 1")
    ask(parent)
    told = parent.tool("t", "activate", id="@2 turns 1")["content"][0]["text"]
    assert "Ask one.\n" in told
