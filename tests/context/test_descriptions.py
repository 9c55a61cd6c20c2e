"""Views and summaries: what stands for an object while its content is not loaded."""

from __future__ import annotations

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import ask, bash, context_tool, finish, go_on, later, use
from context.sent import Sent
from foredeck.context.state.descriptions import Description, describe_object, give_nickname
from foredeck.context.tools.listing import name_object
from foredeck.errors import ToolError
from foredeck.model.documents import FileDocument, Provenance
from foredeck.model.identity import hash_text, hash_value
from foredeck.model.quoting import is_reference
from foredeck.sources.snapshots import is_written_by_agent, link_move, tool_call_of
from foredeck.store.protocol import Batch, Head
from store.documents import file

COLD_S = 10_000


def read_file(host: Host, id: str, content: str) -> Head:
    """A file that the session has read: its newest version."""
    use(host, id, "read", content, path="orders.py")
    (head,) = host.store.query("file")
    return head


@pytest.fixture
def host(new_host: NewHost) -> Host:
    """A session with a command's output."""
    host = new_host().begin()
    bash(host, "c1")
    return host


def result(host: Host) -> Head:
    """The object of that output, as it is now."""
    (head,) = host.store.query("toolcall")
    return head


def head_of(host: Host, id: str) -> Head:
    """The object of a call."""
    head = host.store.head(id)
    assert head is not None
    return head


def test_a_short_summary_joins_the_view_and_has_a_hash(host: Host) -> None:
    before = result(host).fields
    assert describe_object(host.store, result(host), Description("What the tests said"))
    fields = result(host).fields
    assert fields["view"] == ["tool", "args_display", "status", "short_summary"]
    assert fields["short_summary_hash"] == hash_text("What the tests said")
    assert fields["metadata_view_hash"] != before["metadata_view_hash"]
    assert fields["metadata_view_hash"] == hash_value(
        [[name, fields.get(name)] for name in ("id", "type", *fields["view"])]
    )
    assert fields["text_hash"] == before["text_hash"]
    assert not describe_object(host.store, result(host), Description("What the tests said"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Description("two\nlines"), "A short summary is one line."),
        (Description("x" * 301), "A short summary has 300 characters at most: this one has 301."),
        (Description(view=["stat"]), "no field 'stat' to show. Did you mean status?"),
        (Description(view=["content"]), "no field 'content' to show."),
    ],
)
def test_what_cannot_be_says_what_could(host: Host, given: Description, words: str) -> None:
    with pytest.raises(ToolError) as refused:
        describe_object(host.store, result(host), given)
    assert words in str(refused.value)


def test_a_chat_is_not_described(host: Host) -> None:
    (chat,) = host.store.query("chat")
    with pytest.raises(ToolError, match="A chat cannot be described, only: file, toolcall, user"):
        describe_object(host.store, chat, Description("What we said"))


def test_the_line_of_a_pool_goes_by_the_view(new_host: NewHost) -> None:
    host = new_host(layout="pools").begin()
    bash(host, "c1")
    told = name_object(host.state.objects, "@3 What the tests said")
    line = '@3 toolcall tool="bash" args="run c1" status="ok" summary="What the tests said"'
    assert told == line
    assert name_object(host.state.objects, "@3") == line
    assert line in bash(host, "c2").text(0)


def folds(host: Host, ordinal: int) -> Sent:
    """The prompt after a pause in which an object has folded."""
    context_tool(host, f"t{len(host.messages)}", "deactivate", f"@{ordinal}")
    return later(host, "And now?", seconds=COLD_S)


def test_a_folded_line_says_what_somebody_has_said(host: Host) -> None:
    describe_object(host.store, head_of(host, "c1"), Description("What the tests said"))
    give_nickname(host.store, head_of(host, "c1"), "tests")
    left = folds(host, 3).text(2)
    assert is_reference(left)
    line = left.split("\n")[0]
    assert line.endswith(' chars, name=tests, summary="What the tests said"')
    # What a pool lists of it has both as well.
    assert name_object(host.state.objects, "@3").endswith('What the tests said" name=tests')


def test_what_is_said_later_shows_once_the_line_is_written_anew(host: Host) -> None:
    first = folds(host, 3).text(2)
    assert is_reference(first)
    describe_object(
        host.store,
        head_of(host, "c1"),
        Description(long_summary="All of it", view=["tool", "long_summary"]),
    )
    bash(host, "c2")
    assert go_on(host).text(2) == first  # sent bytes stay
    host.restart()
    sent = later(host, "And now?", seconds=COLD_S)
    line, _, digest = first.partition("\n")
    assert sent.text(2) == "\n".join(filter(None, [f'{line}, long_summary="All of it"', digest]))
    assert sent.decision.kind == "rebase"
    describe_object(host.store, head_of(host, "c1"), Description(long_summary="", view=["default"]))
    assert later(host, "And now?", seconds=COLD_S).text(2) == first


def test_a_pasted_text_says_it_in_its_middle(new_host: NewHost) -> None:
    host = new_host(
        policy="adaptive", adaptive={"patience": 2}, rebase={"carrying_factor": 0, "guard": 10}
    ).begin(lines(900, "logged"))
    finish(host)
    (paste,) = host.store.query("user")
    give_nickname(host.store, paste, "log")
    for number in range(13):
        ask(host, f"Something else, {number}.")
        finish(host)
    host.wait(COLD_S)
    text = ask(host, "And now?").text(0)
    assert "chars folded>\nname=log\n" in text


def test_a_files_description_stays_when_its_content_changes(new_host: NewHost) -> None:
    host = new_host().begin()
    head = read_file(host, "r1", lines(20))
    describe_object(host.store, head, Description("What orders are made of"))
    head = read_file(host, "r2", lines(30))
    document = host.store.get(head.id, FileDocument)
    assert document.char_count == len(lines(30))
    assert head.fields["short_summary"] == "What orders are made of"
    assert head.fields["short_summary_hash"] == hash_text("What orders are made of")


@pytest.mark.parametrize(
    "given", [Description("Orders"), Description(long_summary="All"), Description(view=["path"])]
)
def test_a_description_is_nobodys_edit(new_host: NewHost, given: Description) -> None:
    host = new_host().begin()
    head = read_file(host, "r1", lines(20))
    by_agent = host.store.get(head.id, FileDocument)
    by_agent.provenance = Provenance(
        origin="edit", generator="agent", parent_refs=["moved_from:x"], tool_call="c1"
    )
    host.store.commit(Batch(puts=[by_agent.seal()]))
    describe_object(host.store, head, given)
    described = host.store.head(head.id)
    assert not is_written_by_agent(described)
    assert tool_call_of(described) is None
    assert described.fields["provenance"] == {
        "origin": "name",
        "generator": "human",
        "parent_refs": ["moved_from:x"],
    }


def test_a_description_goes_along_with_a_renamed_file() -> None:
    gone, arrived = file("/repo/a.py", None, state="deleted"), file("/repo/b.py")
    gone.view, gone.short_summary = ["path", "short_summary"], "Orders"  # type: ignore[attr-defined]
    link_move(gone.seal(), arrived)
    fields = arrived.model_dump()
    assert (fields["view"], fields["short_summary"]) == (["path", "short_summary"], "Orders")
    assert fields["short_summary_hash"] == hash_text("Orders")
