"""Calls that a script of code mode makes: no message list has them, and nothing of them is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from context.driver import Host
from context.messages import assistant, calls, lines, result
from context.scenes import ask, go_on
from context.sent import Sent, last
from context.working import Work
from foredeck.context.messages.shape import Message
from foredeck.context.state.stored_chat import render_chat
from foredeck.model.documents import FileDocument
from foredeck.store.protocol import Head

TEXT = lines(30)
SCRIPT = {"code": "..."}


@pytest.fixture
def work(work: Work) -> Work:
    """A session that has asked, in a folder with `a.py` and `b.py`."""
    work.file("a.py", TEXT)
    work.file("b.py", lines(30, "other"))
    ask(work.host)
    return work


def nested(work: Work, id: str, tool: str, output: str, /, **arguments: Any) -> None:
    """A script calls a tool: `id` is `<parent>/<n>`."""
    work.host.observe(result(id, tool, output), arguments, parent=id.rpartition("/")[0])


def script(work: Work, id: str, *ran: str) -> None:
    """The script that has made these calls ends; its result joins the list."""
    ended = ended_with(id, *({"id": call, "name": "read"} for call in ran))
    work.host.observe(ended, SCRIPT)
    work.host.add(assistant(calls(id, "codemode", **SCRIPT)), ended)


def ended_with(id: str, *ran: dict[str, Any], **more: Any) -> Message:
    """The result of a script as Pi writes it."""
    listed = [{"status": "ok", "durationMs": 1, **call} for call in ran]
    nested = {"calls": listed, "complete": True}
    return result(id, "codemode", f"{id} completed", nestedCalls=nested, **more)


def run(work: Work, id: str = "c1") -> Sent:
    """A script reads both files, the second first."""
    nested(work, f"{id}/2", "read", lines(30, "other"), path="b.py")
    nested(work, f"{id}/1", "read", TEXT, path="a.py")
    script(work, id, f"{id}/1", f"{id}/2")
    return work.host.call()


def toolcall(host: Host, call_id: str) -> Head:
    ordinal = host.state.objects.index.by_label[call_id]
    head = host.store.head(host.state.objects.index.entries[ordinal].object)
    assert head is not None
    return head


def labels(host: Host, members: set[int]) -> set[str]:
    return {Path(host.state.objects.index.entries[n].label).name for n in members}


def test_they_and_their_files_are_in_index_and_pool_and_not_active(work: Work) -> None:
    run(work)
    sets = work.host.state.chat.branch.sets
    assert labels(work.host, sets.pool) == {"1", "2", "a.py", "b.py", "c1"}
    assert labels(work.host, sets.active) == {"c1"}


def test_they_have_parent_position_and_turn(work: Work) -> None:
    run(work)
    for call_id, position in (("c1/1", 0), ("c1/2", 1)):
        fields = toolcall(work.host, call_id).fields
        assert (fields["parent_ref"], fields["position"]) == ("c1", position)
        assert fields["turn_ref"] == toolcall(work.host, "c1").fields["turn_ref"]
    assert toolcall(work.host, "c1").fields["parent_ref"] is None


def test_a_script_that_has_not_ended_is_indexed_already(work: Work) -> None:
    """So that its files are watched while it runs, however long that is."""
    nested(work, "c1/1", "read", TEXT, path="a.py")
    assert {"a.py", "1"} <= labels(work.host, set(work.host.state.objects.index.entries))


def test_an_engine_that_ends_before_the_script_lists_them_all_the_same(work: Work) -> None:
    nested(work, "c1/1", "read", TEXT, path="a.py")
    work.host.restart()
    script(work, "c1", "c1/1", "c1/2")
    work.host.call()
    assert labels(work.host, work.host.state.chat.branch.sets.pool) == {"1", "a.py", "c1"}


def test_what_a_script_edits_keeps_the_newest_version(work: Work) -> None:
    nested(work, "c1/1", "read", TEXT, path="a.py")
    changed = TEXT.replace("line 7", "line seven")
    work.file("a.py", changed)
    nested(work, "c1/2", "edit", "Edited.", path="a.py", edits=[])
    script(work, "c1", "c1/1", "c1/2")
    work.host.call()
    entry = work.host.state.objects.index.entries[
        work.host.state.objects.index.by_label[f"{work.folder}/a.py"]
    ]
    document = work.host.store.get(entry.object, FileDocument)
    assert (entry.newest.version, document.content) == (2, changed)


def test_a_change_that_only_a_script_has_read_is_announced(work: Work) -> None:
    work.read("a.py")
    work.file("a.py", TEXT + "\nsomething else")
    nested(work, "c1/1", "read", TEXT + "\nsomething else", path="a.py")
    script(work, "c1", "c1/1")
    sent = work.host.call()
    assert "a.py changed on disk" in last(sent)


def test_ids_that_come_again_name_calls_of_their_own(work: Work) -> None:
    """Some local models count from `call_0` in every answer."""
    run(work, "call_0")
    first = toolcall(work.host, "call_0/1")
    nested(work, "call_0/1", "read", TEXT, path="a.py")
    script(work, "call_0", "call_0/1")
    work.host.call()
    second, parent = toolcall(work.host, "call_0/1"), toolcall(work.host, "call_0")
    assert first.id != second.id
    assert second.fields["parent_ref"] == parent.id != "call_0"
    assert second.fields["turn_ref"] == parent.fields["turn_ref"]
    old = work.host.store.head(first.id)
    assert old.fields == first.fields


def test_the_chat_lists_them_under_their_call(work: Work) -> None:
    run(work)
    chat = render_chat(work.host.store, work.host.session, 10)
    of = {
        label: f"@{work.host.state.objects.index.by_label[label]}"
        for label in ("c1", "c1/1", "c1/2")
    }
    assert [line.split(" tool=")[0] for line in chat.splitlines() if "toolcall" in line] == [
        f"--- toolcall {of['c1']}",
        f"--- toolcall {of['c1/1']} in {of['c1']}",
        f"--- toolcall {of['c1/2']} in {of['c1']}",
    ]


def written(path: str, content: str, number: int = 1) -> dict[str, Any]:
    """A call of a script's that writes a file, as Pi notes it."""
    return {"id": f"c1/{number}", "name": "write", "arguments": {"path": path, "content": content}}


def test_a_script_that_an_engine_did_not_outlive_leaves_versions(work: Work) -> None:
    work.file("new.py", "print()\n")
    work.host.restart()
    work.host.add(assistant(calls("c1", "codemode", **SCRIPT)))
    work.host.add(ended_with("c1", written("new.py", "print()\n")))
    work.host.call()
    index = work.host.state.objects.index
    entry = index.entries[index.by_label[f"{work.folder}/new.py"]]
    document = work.host.store.get(entry.object, FileDocument)
    assert document.content == "print()\n"
    assert document.provenance.model_dump()["tool_call"] == "c1"


def test_a_call_of_an_earlier_script_with_the_same_id_is_another(work: Work) -> None:
    nested(work, "c1/1", "read", TEXT, path="a.py")
    script(work, "c1", "c1/1")
    work.host.call()
    before = toolcall(work.host, "c1/1").fields
    work.host.add(
        assistant(calls("c1", "codemode", **SCRIPT)), ended_with("c1", written("n.py", ""))
    )
    go_on(work.host, answer="Written.")
    assert toolcall(work.host, "c1/1").fields == before
