"""Objects that another session has met: they can be had, and what is the other's stays so."""

from __future__ import annotations

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import ask, bash, context_tool, use
from foredeck.context.state.nicknames import give_nickname
from foredeck.errors import ToolError

TEXT = lines(30)


@pytest.fixture
def other(new_host: NewHost) -> Host:
    """A session that has read `/repo/a.txt` and has run a command, and is over."""
    other = new_host(session="other")
    ask(other)
    use(other, "other-read", "read", TEXT, path="/repo/a.txt")
    bash(other, "other-bash")
    head = other.store.head(other.state.index.entries[3].object)
    assert head is not None
    assert give_nickname(other.store, head, "spec")
    other.close()
    return other


@pytest.fixture
def host(other: Host, new_host: NewHost) -> Host:
    """Another session on the same database."""
    del other
    host = new_host(session="mine")
    ask(host)
    return host


@pytest.mark.parametrize("name", ["/repo/a.txt", "a.txt", "spec"])
def test_a_file_joins_the_index_when_it_is_activated(host: Host, name: str) -> None:
    sent = context_tool(host, "c1", "activate", name)
    assert sent.text(2) == f"@3\n{TEXT}"
    entry = host.state.index.entries[3]
    assert (entry.type, entry.label, entry.pin.version) == ("file", "/repo/a.txt", 1)
    assert host.state.branch.sets.active == {3}
    assert 3 in host.state.branch.sets.pool


def test_by_full_id_too(host: Host) -> None:
    (file,) = host.store.query("file")
    assert context_tool(host, "c1", "pin", file.id).text(2) == f"@3\n{TEXT}"
    assert host.state.branch.sets.pinned == {3}


def test_a_result_by_its_id(host: Host) -> None:
    sent = context_tool(host, "c1", "activate", "other-bash")
    assert "output of other-bash 0" in sent.text(2)


def test_the_handle_that_was_told_outlives_a_crash(host: Host) -> None:
    answer = host.tool("c1", "activate", id="spec")
    assert answer["details"]["foredeck"]["ordinal"] == 3
    host.restart()  # nothing was assembled since
    assert host.state.index.entries[3].label == "/repo/a.txt"


@pytest.mark.parametrize("tool", ["deactivate", "unpin"])
def test_what_this_session_never_had_cannot_be_put_away(host: Host, tool: str) -> None:
    with pytest.raises(ToolError, match="No object is called 'spec'"):
        host.tool("c1", tool, id="spec")
    assert len(host.state.index) == 2


@pytest.mark.parametrize("name", ["chat:other", "session:other", "call:other:1", "turn:other:1"])
def test_another_sessions_state_is_out_of_reach(host: Host, name: str) -> None:
    with pytest.raises(ToolError, match="No object is called"):
        host.tool("c1", "activate", id=name)


def test_the_other_session_is_left_as_it_was(host: Host, other: Host) -> None:
    before = (dict(other.state.index.by_object), other.state.branch.sets.active)
    other.close()
    context_tool(host, "c1", "pin", "spec")
    assert (dict(other.state.index.by_object), other.state.branch.sets.active) == before
