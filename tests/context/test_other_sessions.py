"""Objects that another session has met: they can be had, and what is the other's stays so."""

from __future__ import annotations

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import ask, bash, context_tool, go_on, use
from foredeck.context.state.descriptions import give_nickname
from foredeck.errors import ToolError
from foredeck.model.observations import CompactionDocument
from foredeck.model.records import by_foredeck
from foredeck.store.protocol import Batch

TEXT = lines(30)


@pytest.fixture
def other(new_host: NewHost) -> Host:
    """A session that has read `/repo/a.txt` and has run a command, and is over."""
    other = new_host(session="other").begin()
    use(other, "other-read", "read", TEXT, path="/repo/a.txt")
    bash(other, "other-bash")
    head = other.store.head(other.state.objects.index.entries[3].object)
    assert head is not None
    assert give_nickname(other.store, head, "spec")
    other.close()
    return other


@pytest.fixture
def host(other: Host, new_host: NewHost) -> Host:
    """Another session on the same database."""
    del other
    return new_host(session="mine").begin()


@pytest.mark.parametrize("name", ["/repo/a.txt", "a.txt", "spec"])
def test_a_file_joins_the_index_when_it_is_activated(host: Host, name: str) -> None:
    sent = context_tool(host, "c1", "activate", name)
    assert sent.text(2) == f"@3\n{TEXT}"
    entry = host.state.objects.index.entries[3]
    assert (entry.type, entry.label, entry.newest.version) == ("file", "/repo/a.txt", 1)
    assert host.state.chat.branch.sets.active == {3}
    assert 3 in host.state.chat.branch.sets.pool


def test_a_version_that_a_file_new_to_the_session_does_not_have(host: Host) -> None:
    with pytest.raises(ToolError, match="@3 has no v9: this session has seen no other version yet"):
        host.tool("c1", "activate", id="a.txt v9")


def test_the_handle_that_was_given_outlives_a_crash(host: Host) -> None:
    answer = host.tool("c1", "activate", id="spec")
    assert answer["details"]["foredeck"]["ordinal"] == 3
    host.restart()  # nothing was assembled since
    assert host.state.objects.index.entries[3].label == "/repo/a.txt"


@pytest.mark.parametrize("tool", ["deactivate", "unpin"])
def test_what_this_session_never_had_cannot_be_put_away(host: Host, tool: str) -> None:
    with pytest.raises(ToolError, match="No object is called 'spec'"):
        host.tool("c1", tool, id="spec")
    assert len(host.state.objects.index) == 2


def test_a_chat_reads_as_it_was_said(host: Host) -> None:
    shown = context_tool(host, "c1", "activate", "chat:other").text(2)
    assert shown.startswith("--- user\nGo on.\n")
    assert '--- toolcall other-bash tool=bash args="run other-bash" status=ok' in shown
    assert host.state.chat.branch.sets.active == {3}


def test_a_system_prompt_does_too(host: Host) -> None:
    sent = context_tool(host, "c1", "pin", "system_prompt:other")
    assert sent.text(2) == "You are a coding agent."
    assert host.state.chat.branch.sets.pinned == {3}


def test_turns_of_a_chat(other: Host, new_host: NewHost) -> None:
    use(other, "other-ls", "ls", "a.txt", path="/repo")
    ask(other, "And then?")
    bash(other, "second")
    other.close()
    mine = new_host(session="mine").begin()
    shown = context_tool(mine, "c1", "activate", "chat:other turns 2").text(2)
    assert shown.startswith("--- user\nAnd then?\n--- toolcall second tool=bash")
    assert "other-bash" not in shown
    with pytest.raises(ToolError, match="There are no turns 7-9 in @3"):
        mine.tool("c2", "activate", id="@3 turns 7-9")


def test_handles_in_a_chat_are_ours_or_say_whose_they_are(other: Host, new_host: NewHost) -> None:
    context_tool(other, "again", "activate", "@3")
    go_on(other, "And @4?", answer="See @5 and @3.")
    go_on(other)
    other.close()
    mine = new_host(session="mine").begin()
    context_tool(mine, "c1", "activate", "other-bash")
    shown = mine.tool("c2", "activate", id="chat:other turns 1-3")["content"][0]["text"]
    first, rest = shown.split("\n", 1)
    assert first == "[foredeck] Said in session other: what is @12 there is other:@12 here."
    assert '--- toolcall @3 tool=bash args="run other-bash" status=ok' in rest
    assert "--- toolcall other-read tool=read" in rest
    assert "See @5 and @3." in rest
    meant = mine.tool("c3", "activate", id="other:@5")["details"]["foredeck"]
    assert (meant["object"], meant["ordinal"]) == ("other-bash", 3)


def test_chat_that_was_compacted(other: Host, new_host: NewHost) -> None:
    compacted = CompactionDocument(
        id="compaction:other:1",
        session="other",
        content="What was done with @3.",
        first_turn=1,
        last_turn=2,
        turns=[[1, "--- turn 1"], [2, "--- turn 2"]],
        asked_by="user",
        provenance=by_foredeck(),
    )
    other.store.commit(Batch([compacted.seal()]))
    other.close()
    mine = new_host(session="mine").begin()
    whose = "[foredeck] Said in session other: what is @12 there is other:@12 here."
    said = context_tool(mine, "c1", "activate", compacted.id).text(2)
    assert said == f"@3\n{whose}\nWhat was done with @3."
    assert context_tool(mine, "c2", "activate", "@3 turns 2").text(4) == "--- turn 2"


def test_a_session_has_no_text_and_is_listed_only(host: Host) -> None:
    sent = context_tool(host, "c1", "activate", "session:other")
    assert sent.text(2) == "@3 has no content to show: what was said in it is its chat (chat:ID)."
    sets = host.state.chat.branch.sets
    assert (sets.pool, sets.active) == ({3}, set())


@pytest.mark.parametrize("name", ["other:@3", "session:other:@3", "othe:@3"])
def test_by_session_and_handle(host: Host, name: str) -> None:
    assert context_tool(host, "c1", "activate", name).text(2) == f"@3\n{TEXT}"


def test_a_start_that_fits_several_lists_them(other: Host, new_host: NewHost) -> None:
    for id in ("toolu_01a", "toolu_01b"):
        bash(other, id)
    other.close()
    mine = new_host(session="mine").begin()
    with pytest.raises(ToolError, match="fits several ids: toolu_01a, toolu_01b"):
        mine.tool("c1", "activate", id="toolu_01")
    assert len(mine.state.objects.index) == 2


def test_an_id_of_theirs_that_is_ours_too_stays_ours(other: Host, new_host: NewHost) -> None:
    """Some local models count from `call_0` in every session."""
    bash(other, "call_0")
    other.close()
    mine = new_host(session="mine").begin()
    bash(mine, "call_0", lines(20, "ours"))
    assert mine.tool("c1", "activate", id="call_0")["content"][0]["text"] == "@3 is above."
    theirs = mine.store.head("call_0")
    assert theirs is not None
    shown = mine.tool("c2", "activate", id="other:@6")["content"][0]["text"]
    assert shown == lines(20, "output of call_0")
    assert mine.state.objects.index.by_label["call_0"] == 3


@pytest.mark.parametrize("name", ["call:other:1", "turn:other:1", "member:other:3"])
def test_another_sessions_records_are_out_of_reach(host: Host, name: str) -> None:
    with pytest.raises(ToolError, match="No object is called"):
        host.tool("c1", "activate", id=name)
