"""What the store holds after a real session: objects, links, pins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from foredeck.model.documents import (
    ChatDocument,
    FileDocument,
    SessionDocument,
    SystemPromptDocument,
    ToolcallDocument,
)
from foredeck.model.identity import hash_text, sha256_hex
from foredeck.model.messages import load_message
from foredeck.store.store import Store
from foredeck_bench.twin.script import Text, call
from foredeck_bench.twin.server import ScriptedModel
from harness import Pi
from observed import calls_of, notified, object_id, session_of, stored

LONG = "".join(f"line {n}: the quick brown fox jumps over the lazy dog\n" for n in range(60))


def work(pi: Pi) -> ScriptedModel:
    """A session of two prompts that reads, edits, runs and fails."""
    (pi.repo / "a.txt").write_text(LONG)
    model = pi.serve(
        [
            [Text("I look."), call("read", path="a.txt"), call("bash", command="exit 4")],
            call("edit", path="a.txt", edits=[{"oldText": "line 7:", "newText": "line seven:"}]),
            "done",
            call("pin", id="a.txt"),
            "pinned",
        ]
    )
    assert pi.print("first question", "second question", foredeck=True).code == 0
    return model


def test_what_a_session_leaves(pi: Pi) -> None:
    objects_have_their_fields(pi, work(pi))
    file_has_one_version_for_each_content(pi)
    turns_tool_calls_and_files_are_linked_both_ways(pi)


def objects_have_their_fields(pi: Pi, model: ScriptedModel) -> None:
    with stored(pi) as store:
        session = session_of(store)
        assert session == pi.workspace.session_entries()[0]["id"]
        wrapper = store.get(f"session:{session}", SessionDocument)
        assert (wrapper.harness, wrapper.session_id) == ("pi", session)
        assert (wrapper.cwd, wrapper.parent_session) == (str(pi.repo), None)
        assert wrapper.host_file == str(pi.workspace.session_files()[0])
        prompt = store.get(wrapper.system_prompt_ref, SystemPromptDocument)
        assert prompt.locked
        assert prompt.content == model.requests[0].request.system
        assert [tool["name"] for tool in prompt.tools] == list(model.requests[0].request.tools)
        chat = store.get(wrapper.chat_ref, ChatDocument)
        assert (chat.locked, chat.session_ref, chat.turn_count) == (True, f"session:{session}", 5)


def file_has_one_version_for_each_content(pi: Pi) -> None:
    edited = LONG.replace("line 7:", "line seven:")
    with stored(pi) as store:
        id = object_id(pi, "/a.txt")
        versions = [store.get(id, FileDocument, head.token) for head in store.history(id)]
        assert [version.content for version in versions if version] == [LONG, edited]
        for version in versions:
            assert version.source.path == str(pi.repo / "a.txt")
            assert version.source_hash == sha256_hex((version.content or "").encode())
            assert version.text_hash == hash_text(version.content or "")
            assert version.char_count == len(version.content or "")
            assert version.state == "text"


def turns_tool_calls_and_files_are_linked_both_ways(pi: Pi) -> None:
    with stored(pi) as store:
        session = session_of(store)
        turns = sorted(
            (head.fields for head in store.query("turn", {"session": session})),
            key=lambda fields: int(fields["id"].rsplit(":")[-1]),
        )
        calls = [toolcalls(store, turn["toolcall_ids"]) for turn in turns]
        assert [[c.tool for c in found] for found in calls] == [
            ["read", "bash"],
            ["edit"],
            [],
            ["pin"],
            [],
        ]
        (read, bash), (edit,), *_ = calls
        assert [turn["user_turn"] for turn in turns] == [1, 1, 1, 2, 2]
        assert {c.chat_ref for found in calls for c in found} == {f"chat:{session}"}
        for turn, found in zip(turns, calls, strict=True):
            assert all(c.turn_ref == turn["id"] for c in found)
        file = object_id(pi, "/a.txt")
        assert (read.file_refs, edit.file_refs) == ([file], [file])
        first, second = store.history(file)
        assert read.file_version_ref["object"] == file
        assert read.file_version_ref["content_hash"] == first.fields["content_hash"]
        assert second.fields["provenance"]["generator"] == "agent"
        assert (bash.status, bash.content) == ("fail", "(no output)\n\nCommand exited with code 4")
        assert (bash.args, bash.args_display) == ({"command": "exit 4"}, "exit 4")
        assert edit.details["diff"]
        questions = [load_message(t["user"], store.blob) for t in turns if t["user"]]
        assert [q["content"][0]["text"] for q in questions] == ["first question", "second question"]


def toolcalls(store: Store, ids: list[str]) -> list[ToolcallDocument]:
    """Tool call objects by id."""
    found = [store.get(id, ToolcallDocument) for id in ids]
    assert all(found)
    return [document for document in found if document is not None]


def full_output_of(store: Store) -> tuple[ToolcallDocument, dict[str, Any]]:
    """The only tool call of a session, and the details that Pi gave with it."""
    (head,) = store.query("toolcall")
    document = store.get(head.id, ToolcallDocument)
    return document, document.details


def test_the_full_output_of_a_truncated_command_is_kept(pi: Pi) -> None:
    pi.serve([call("bash", command="seq 30000"), "done"])
    assert pi.print("count", foredeck=True).code == 0
    everything = "".join(f"{n}\n" for n in range(1, 30_001))
    with stored(pi) as store:
        document, details = full_output_of(store)
        assert document.full_output is not None
        assert store.blob(document.full_output) == everything.encode()
        assert Path(details["fullOutputPath"]).read_text() == everything
        assert len(document.content or "") < len(everything)
    Path(details["fullOutputPath"]).unlink()


def test_a_damaged_state_folder_is_told_and_the_agent_works(pi: Pi) -> None:
    home = pi.workspace.foredeck_home
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "user.key").write_text("nonsense")
    file = pi.config().sqlite_file
    file.write_bytes(b"")
    os.utime(file, (1_700_000_000, 1_700_000_000))
    pi.serve([call("bash", command="echo one"), "done"])
    with pi.rpc("go", foredeck=True) as rpc:
        told = notified(rpc)
    assert [f"{home / 'user.key'} is damaged" in text for text in told] == [False, True]
    assert f"{file} is empty: it is kept as" in told[0]
    with stored(pi) as store:
        assert len(calls_of(store, session_of(store))) == 2
