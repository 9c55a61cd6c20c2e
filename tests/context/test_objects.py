"""What a conversation leaves in the store: objects, the links between them, and pins."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from context.driver import Host
from context.messages import PIXEL, assistant, calls, image, lines, result, text, user
from context.scenes import ask, bash, context_tool, finish, go_on, use
from context.working import Work
from foredeck.context.state.index import version_seen
from foredeck.context.state.stored_chat import chat_fields
from foredeck.errors import OutOfSync
from foredeck.hosts.protocol import SessionEventParams
from foredeck.model.call_values import OpRow
from foredeck.model.calls import CallRecord
from foredeck.model.documents import Document, SystemPromptDocument, ToolcallDocument
from foredeck.model.messages import load_message, marked
from foredeck.model.records import SAME_TRANSACTION, TurnDocument, call_id
from foredeck.store.protocol import Token

TEXT = lines(30)


def toolcall(host: Host, id: str) -> ToolcallDocument:
    document = host.store.get(id, ToolcallDocument)
    assert document is not None
    return document


def turn(host: Host, number: int) -> TurnDocument:
    document = host.store.get(f"turn:{host.session}:{number}", TurnDocument)
    assert document is not None
    return document


# Tool calls


def test_a_result_is_stored_with_all_that_the_host_gave(host: Host) -> None:
    ask(host)
    details = {"diff": "+1", "long": "d" * 1000}
    host.add(
        assistant(calls("c1", "bash", command="make", timeout=5)),
        result("c1", "bash", [text("out"), image()], failed=True, details=details),
    )
    host.call()
    stored = toolcall(host, "c1")
    assert (stored.content, stored.tool, stored.status) == ("out", "bash", "fail")
    assert stored.args == {"command": "make", "timeout": 5}
    assert stored.args_display == "make"
    assert [host.store.blob(digest) for digest in stored.images] == [base64.b64decode(PIXEL)]
    assert stored.details["diff"] == "+1"
    assert host.store.blob(stored.details["long"]["$text"]) == b"d" * 1000
    assert stored.provenance.generator == "tool"


def test_a_text_of_lone_surrogates_comes_back_as_it_was(host: Host) -> None:
    ask(host)
    odd = "\ud83d half \udc00 \u2028 " * 60
    use(host, "c1", "bash", odd, command="odd \ud800")
    assert toolcall(host, "c1").content == odd
    assert toolcall(host, "c1").args == {"command": "odd \ud800"}


def test_a_repeated_providers_id_gets_an_id_of_its_own(host: Host) -> None:
    ask(host)
    for number in range(3):
        use(host, "call_0", "bash", lines(20, f"out {number}"), command=f"run {number}")
    heads = host.store.query("toolcall", {"provider_call_id": "call_0"})
    assert heads[0].id == "call_0"
    assert len({head.id for head in heads}) == 3
    contents = {toolcall(host, head.id).content for head in heads}
    assert contents == {lines(20, f"out {number}") for number in range(3)}
    assert [turn(host, number).toolcall_ids for number in (1, 2, 3)] == [[h.id] for h in heads]


# Turns and links


def test_a_turn_holds_one_answer_with_what_led_to_it_and_its_calls(host: Host) -> None:
    ask(host, "Do it.")
    host.add(
        {"role": "custom", "customType": "n", "content": "A note.", "display": True},
        assistant("Working.", calls("a", "bash", command="1"), calls("b", "bash", command="2")),
        result("b", "bash", "two"),
        result("a", "bash", "one"),
    )
    host.call()
    first = turn(host, 1)
    assert first.toolcall_ids == ["a", "b"]
    assert first.user_turn == 1
    assert first.assistant_meta["stopReason"] == "toolUse"
    assert first.user is not None
    assert load_message(first.user, host.store.blob)["content"] == "Do it."
    assert [load_message(a, host.store.blob)["content"] for a in first.others] == ["A note."]
    assert first.assistant is not None
    assert load_message(first.assistant, host.store.blob)["content"][0]["text"] == "Working."


def test_a_call_points_back_to_chat_turn_and_position(host: Host) -> None:
    ask(host)
    bash(host, "x")
    host.add(
        assistant(calls("a", "bash", command="1"), calls("b", "bash", command="2")),
        result("b", "bash", "two"),
        result("a", "bash", "one"),
    )
    host.call()
    found = [(toolcall(host, id).turn_ref, toolcall(host, id).position) for id in ("x", "a", "b")]
    assert found == [("turn:s:1", 0), ("turn:s:2", 0), ("turn:s:2", 1)]
    assert toolcall(host, "a").chat_ref == "chat:s"


def test_how_long_a_tool_ran_is_stored_with_its_result(host: Host) -> None:
    ask(host)
    answers = [{**result(id, "bash", id), "durationMs": 1_200} for id in ("a", "b")]
    host.observe(answers[0], {"command": "1"})
    host.add(assistant(calls("a", "bash", command="1"), calls("b", "bash", command="2")), *answers)
    host.call()
    assert [toolcall(host, id).took_ms for id in ("a", "b")] == [1_200, 1_200]


def test_the_position_is_right_though_the_engine_died_before_the_list_said_so(host: Host) -> None:
    ask(host)
    answers = [result("a", "read", TEXT), result("b", "read", lines(30, "b"))]
    host.observe(answers[1], {"path": "b.py"})
    host.observe(answers[0], {"path": "a.py"})
    host.restart()
    host.add(assistant(calls("a", "read", path="a.py"), calls("b", "read", path="b.py")), *answers)
    host.call()
    assert [toolcall(host, id).position for id in ("a", "b")] == [0, 1]
    for id, content in (("a", TEXT), ("b", lines(30, "b"))):
        pin = toolcall(host, id).file_version_ref
        assert pin is not None
        assert resolves(host, pin, id).content == content


def test_an_observed_result_is_stored_before_the_list_has_it(host: Host) -> None:
    ask(host)
    host.observe(result("c1", "bash", TEXT), {"command": "make"})
    assert toolcall(host, "c1").content == TEXT
    assert toolcall(host, "c1").turn_ref == "turn:s:1"
    bash(host, "c1", TEXT)
    assert len(host.store.history("c1")) == 1


def test_no_turn_is_written_twice(host: Host) -> None:
    ask(host)
    bash(host, "c1")
    host.restart()
    leaf = host.leaf()
    go_on(host, "One way.")
    host.go_to(leaf)
    host.compact("What was done.", keep=2)
    ask(host, "Another way.")
    assert [len(host.store.history(f"turn:s:{n}")) for n in (1, 2, 3)] == [1, 1, 0]


# Files


@pytest.fixture
def work(work: Work) -> Work:
    ask(work.host)
    return work


def test_a_call_points_to_the_files_that_it_touched(work: Work) -> None:
    for name in ("a.py", "b.py"):
        work.file(name, TEXT)
    work.run("ls", "a.py\nb.py", path=".")
    heads = work.host.store.query("file")
    assert set(toolcall(work.host, "w1").file_refs) == {head.id for head in heads}


def resolves(host: Host, pin: dict[str, Any], own: str) -> Document:
    """The document that a pin names, its hashes verified."""
    token = Token(pin["token"])
    if token == SAME_TRANSACTION:
        token = host.store.history(own)[0].token
    document = host.store.get(pin["object"], Document, token)
    assert document.content_hash == pin["content_hash"]
    assert document.text_hash == pin["text_hash"]
    assert document.metadata_view_hash == pin["metadata_view_hash"]
    return document


def test_a_read_pins_the_version_that_was_current(work: Work) -> None:
    work.file("a.py", TEXT)
    work.read("a.py")
    work.write("a.py", lines(30, "new"))
    work.read("a.py", offset=3, limit=5)
    for id, content in (("w1", TEXT), ("w3", lines(30, "new"))):
        pin = toolcall(work.host, id).file_version_ref
        assert pin is not None
        assert resolves(work.host, pin, id).content == content
    assert [toolcall(work.host, id).file_version_ref["version"] for id in ("w1", "w3")] == [1, 2]  # type: ignore[index]
    assert toolcall(work.host, "w3").args == {"path": "a.py", "offset": 3, "limit": 5}
    assert toolcall(work.host, "w2").file_version_ref is None


@pytest.mark.parametrize("tool", ["activate", "pin"])
def test_what_a_context_tool_shows_is_pinned_as_by_a_read(work: Work, tool: str) -> None:
    path = work.file("a.py", TEXT)
    ask(work.host)
    work.run("ls", "a.py", path=".")
    context_tool(work.host, "t1", tool, "a.py")  # read from the disk
    context_tool(work.host, "t2", tool, "a.py")  # in view already
    work.write("a.py", lines(30, "new"))
    if tool == "activate":
        context_tool(work.host, "t3", "activate", "a.py v2")  # as it was
        context_tool(work.host, "t4", "activate", "a.py chars 1-20")  # a part, as it is
    work.host.restart()
    file = work.host.store.query("file")[0].id
    wanted = {"t1": TEXT, "t2": TEXT, "t3": TEXT, "t4": path.read_text()}
    for id in ("t1", "t2", "t3", "t4") if tool == "activate" else ("t1", "t2"):
        shown = toolcall(work.host, id)
        assert shown.file_refs == [file]
        assert shown.file_version_ref is not None
        assert resolves(work.host, shown.file_version_ref, id).content == wanted[id]


def test_an_image_that_is_read_is_pinned_and_announced_when_it_changes(work: Work) -> None:
    path = work.folder / "a.png"
    path.write_bytes(base64.b64decode(PIXEL))
    ask(work.host)
    work.run("read", [text("Read image file [image/png]"), image()], path="a.png")
    pin = toolcall(work.host, "w1").file_version_ref
    assert pin["object"] == work.host.store.query("file")[0].id
    resolves(work.host, pin, "w1")
    path.write_bytes(b"\x89PNG, another")
    work.notice_changes()
    assert "a.png changed on disk" in str(ask(work.host).prompt[-1])


# Pins and the system prompt


def visible(host: Host, call: int) -> list[tuple[int, int, str]]:
    """What was visible at a call, as the chain of records tells: handle, version, text hash."""
    rows: dict[int, OpRow] = {}
    for number in range(1, call + 1):
        rows.update({row.message: row for row in host.shown(number).record.ops})
    return [
        (row.subject, row.version or 0, row.text_hash or "")
        for row in rows.values()
        if row.subject and row.form in ("full", "host")
    ]


def test_what_was_visible_at_a_call_can_be_verified_later(host: Host) -> None:
    ask(host)
    use(host, "r1", "read", TEXT, path="a.py")
    use(host, "r2", "read", lines(30, "entirely new"), path="a.py")
    bash(host, "c1")
    host.restart()
    for call, count in ((2, 1), (3, 2), (4, 3)):
        pins = visible(host, call)
        assert len(pins) == count
        for ordinal, version, text_hash in pins:
            pin = version_seen(host.store, "s", ordinal, version)
            assert resolves(host, pin.model_dump(), pin.object).text_hash == text_hash


def test_the_system_prompt_is_v1_even_if_a_tool_ran_before_the_first_call(host: Host) -> None:
    host.observe(result("c0", "bash", "early"), {"command": "ls"})
    host.restart()
    ask(host)
    (version,) = host.store.history("system_prompt:s")
    prompt = host.store.get("system_prompt:s", SystemPromptDocument, version.token)
    assert prompt.content
    handle = host.state.objects.index.by_object["system_prompt:s"]
    assert host.state.objects.index.entries[handle].newest.version == 1


def test_the_pin_of_the_system_prompt_names_the_transaction_that_wrote_it(host: Host) -> None:
    ask(host)
    bash(host, "c1")
    host.restart()
    bash(host, "c2")
    written = host.store.history("system_prompt:s")[-1].token
    for number in (1, 2, 3):
        record = host.store.head(f"call:s:{number}")
        pin = CallRecord(record.fields).system
        assert (record.token if pin.token == SAME_TRANSACTION else pin.token) == written


# Call records


@pytest.mark.parametrize("restart", [False, True], ids=["steady", "restarted"])
def test_all_that_the_host_gives_with_a_message_is_kept(host: Host, restart: bool) -> None:
    long = "d" * 1000
    host.add(
        {"role": "custom", "customType": "n", "content": "Note.", "details": {"of": long}},
        {**user("Look."), "attachments": [{"name": "a.png"}]},
    )
    host.call()
    if restart:
        host.restart()
    host.add(
        {**assistant("Ok.", calls("c1", "bash", command="ls")), "responseId": "r1", "novel": 7},
        {**result("c1", "bash", [text("out")]), "usage": {"output": 2}},
    )
    host.call()
    finish(host)
    host.call()
    first, second = chat_fields(host.store, "s", 2)["turns"]
    assert first["others"][0]["details"] == {"of": long}
    assert first["user"]["attachments"] == [{"name": "a.png"}]
    assert first["assistant_meta"]["responseId"] == "r1"
    assert first["assistant"]["novel"] == 7
    extras = host.store.head(second["id"]).fields["extras"]
    assert list(extras.values()) == [{"usage": {"output": 2}}]


@pytest.mark.parametrize("restart", [False, True], ids=["steady", "restarted"])
def test_the_last_answer_is_stored_when_it_is_given_and_once(host: Host, restart: bool) -> None:
    ask(host, "A question.")
    finish(host, "The answer.")
    event = SessionEventParams(session="s", kind="answer", message=host.messages[-1], entry="s-e2")
    host.engine.session_event(event)
    host.engine.session_event(event)
    (turn,) = host.store.query("turn")
    assert (turn.fields["user_turn"], turn.fields["answers"]) == (1, call_id("s", 1))
    assert load_message(turn.fields["assistant"], host.store.blob)["content"][0]["text"] == (
        "The answer."
    )
    assert load_message(turn.fields["user"], host.store.blob)["content"] == "A question."
    if restart:
        host.restart()
    ask(host, "Another.")
    assert len(host.store.query("turn")) == 1
    chat = host.store.head("chat:s")
    assert chat.fields["turn_count"] == 1


def test_a_refused_request_leaves_no_system_prompt_without_its_texts(host: Host) -> None:
    ask(host)
    host.tools = [{"name": "read", "description": "d" * 1000, "parameters": {"type": "object"}}]
    request = host.request(host.now_ms + 1).model_copy(update={"keep": 99})
    with pytest.raises(OutOfSync):
        host.engine.assemble(request)
    host.observe(result("c1", "bash", "out"), {"command": "make"})
    stored = host.store.get("system_prompt:s", SystemPromptDocument)
    named = set(marked([stored.messages, stored.tools]))
    assert host.store.blobs(named).keys() == named
