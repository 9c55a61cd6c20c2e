"""The model's own tools: what they answer, and what they do to pool, active and pinned set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from context.driver import Host
from context.messages import assistant, calls, image, lines, result
from context.scenes import ask, bash, context_tool, go_on, later, old_output, use
from context.sent import last
from context.working import Work
from foredeck.context.tools import tools
from foredeck.errors import ToolError

TEXT = lines(30)


def said(host: Host, tool: str, name: Any) -> str:
    """What a tool answers, without the model being called."""
    host.add(assistant(calls(f"t{len(host.messages)}", tool)))
    answer = host.tool(f"t{len(host.messages) - 1}", tool, **{"id": name})
    host.add(answer)
    return str(answer["content"][0]["text"])


def refused(host: Host, tool: str, **arguments: Any) -> str:
    with pytest.raises(ToolError) as caught:
        host.tool("refused", tool, **arguments)
    return str(caught.value)


def members(host: Host) -> dict[str, set[int]]:
    sets = host.state.chat.branch.sets
    return {"pool": sets.pool, "active": sets.active, "pinned": sets.pinned}


@pytest.fixture
def short_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """`activate` brings 1,000 characters at most."""
    monkeypatch.setattr(tools, "MAX_CHARS", 1000)


@pytest.fixture
def folded(host: Host) -> Host:
    """An output that was folded: @3."""
    ask(host)
    old_output(host)
    sent = later(host)
    assert sent.text(2).startswith("@3 folded: ")
    assert members(host) == {"pool": {3}, "active": set(), "pinned": set()}
    return host


# activate


def test_activate_brings_folded_content_back_into_its_own_result(folded: Host) -> None:
    sent = context_tool(folded, "t", "activate", "@3")
    assert last(sent) == f"@3\n{lines(20, 'output of old')}"
    assert members(folded)["active"] == {3}


@pytest.mark.parametrize(
    ("of", "told"),
    [
        ("v9", "@3 has no v9: this session has seen v1 to v1."),
        ("call 99", "There is no call 99; calls go from 1 to 6."),
        ("call 1", "@3 did not exist yet at call 1."),
    ],
)
def test_what_never_was_is_refused_with_what_was(folded: Host, of: str, told: str) -> None:
    assert refused(folded, "activate", id=f"@3 {of}") == told


def test_a_version_between_two_writes_of_one_answer_is_not_said_to_have_been_seen(
    host: Host,
) -> None:
    ask(host)
    texts = {word: f"{word}\n" * 40 for word in ("first", "second")}
    host.add(
        assistant(*(calls(id, "write", path="a.py", content=text) for id, text in texts.items())),
        *(result(id, "write", "Wrote.") for id in texts),
    )
    host.call()
    assert said(host, "activate", "a.py v2") == texts["second"]
    assert refused(host, "activate", id="a.py v1") == "@3 has no v1: this session has seen v2."


def test_activate_on_an_empty_text_says_so(host: Host) -> None:
    ask(host)
    bash(host, "c1")
    use(host, "w", "write", "Wrote.", path="empty.txt", content="")
    assert said(host, "activate", "empty.txt") == "@4 is empty."


@pytest.mark.usefixtures("short_answers")
def test_activate_cuts_a_content_that_is_too_long(host: Host) -> None:
    ask(host)
    use(host, "w", "write", "Wrote.", path="a.py", content="x" * 1500)
    answer = said(host, "activate", "a.py")
    assert answer == "x" * 1000 + (
        '\n[The first 1,000 of 1,500 characters: activate "@3 chars 1001-1500" for the rest.]'
    )
    assert said(host, "activate", "@3 chars 1001-1500") == "x" * 500


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x00\x01\x02" * 100, "it is not text"),
        (None, "it was deleted; an older version may be had, such as v1"),
    ],
)
def test_activate_on_nothing_to_show_says_why(work: Work, content: bytes | None, why: str) -> None:
    path = work.file("a.bin", TEXT)
    ask(work.host)
    work.read("a.bin")
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    assert said(work.host, "activate", "a.bin") == f"@3 has no content to show: {why}."


@pytest.mark.parametrize(
    "form", ["deep/a.py", "{folder}/deep/a.py", "~/repo/deep/a.py", "@deep/a.py"]
)
@pytest.mark.parametrize("tool", ["activate", "pin"])
def test_a_listed_file_is_read_by_every_path_that_read_takes(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, tool: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path.resolve()))
    work.file("deep/a.py", TEXT)
    ask(work.host)
    work.run("find", "deep/a.py", pattern="*.py", path=".")
    assert said(work.host, tool, form.format(folder=work.folder)) == TEXT


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x00\x01\x02" * 100, "it is not text"),
        (b"line\n" * 500_000, "it is too large; read it with offset and limit"),
        (None, "it was deleted"),
    ],
)
def test_a_listed_file_without_text_is_noted_and_not_active(
    work: Work, content: bytes | None, why: str
) -> None:
    path = work.file("a.bin", TEXT)
    ask(work.host)
    work.run("ls", "a.bin", path=".")
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    at = entry_of(work.host, "a.bin")
    assert said(work.host, "pin", "a.bin") == f"@{at} has no content to show: {why}."
    work.host.call()
    assert at not in members(work.host)["active"] | work.host.state.chat.branch.sets.pins
    assert at in members(work.host)["pool"]


def test_a_listed_file_that_cannot_be_reached_says_so(host: Host) -> None:
    """Such as one of a recording."""
    ask(host)
    use(host, "l", "ls", "a.py", path=".")
    assert said(host, "activate", "a.py") == (
        "@3 has no content to show: it was only listed; it cannot be reached from here."
    )


def test_what_was_deleted_is_no_longer_active_once_the_model_has_its_notice(work: Work) -> None:
    path = work.file("a.py", TEXT)
    ask(work.host)
    work.read("a.py")
    at = entry_of(work.host, "a.py")
    context_tool(work.host, "p", "pin", "a.py")
    assert members(work.host)["pinned"] == {at}
    path.unlink()
    work.notice_changes()
    assert "a.py was deleted on disk" in last(ask(work.host))
    assert members(work.host)["active"] == set()
    assert work.host.state.chat.branch.sets.waiting == {at}
    assert said(work.host, "activate", "a.py v1") == f"@{at} v1 is above."
    work.host.call()
    assert at in members(work.host)["active"]


def entry_of(host: Host, path: str) -> int:
    return host.state.objects.index.by_label[f"{host.cwd}/{path}"]


def test_a_listing_that_ended_before_a_read_does_not_hide_what_the_read_found(work: Work) -> None:
    (work.folder / "a.bin").write_bytes(b"\x00\x01\x02" * 100)
    ask(work.host)
    read = result("r", "read", "\ufffd" * 300)
    listing = result("l", "ls", "a.bin")
    work.host.observe(listing, {"path": "."})
    work.host.observe(read, {"path": "a.bin"})
    work.host.add(assistant(calls("r", "read", path="a.bin"), calls("l", "ls", path=".")))
    work.host.add(read, listing)
    work.host.call()
    assert said(work.host, "activate", "a.bin") == "@3 has no content to show: it is not text."


def test_a_folded_image_comes_back_as_the_image(host: Host) -> None:
    ask(host)
    shot = [{"type": "text", "text": TEXT}, image()]
    use(host, "i", "screenshot", shot, page="/")
    use(host, "o", "screenshot", [image(), image("bm90IGFuIGltYWdl")], page="/other")
    for number in range(3):
        go_on(host, f"Turn {number}")
    sent = later(host)
    assert [sent.text(n).split(":")[0] for n in (2, 4)] == ["@3 folded", "@4 folded"]
    assert host.tool("t", "activate", id="@3")["content"] == shot
    assert host.tool("u", "activate", id="@4")["content"] == [
        {
            "type": "text",
            "text": "An image of it is no PNG, JPEG, GIF or WebP: run the tool of @4 again to see "
            "more.",
        },
        image(),
    ]
    context_tool(host, "v", "activate", "@3")
    assert said(host, "activate", "@3") == "@3 is above."


# deactivate


# pin, unpin


def test_only_the_newest_version_can_be_pinned(folded: Host) -> None:
    expected = "Only the newest version can be pinned, and as a whole: name it alone."
    assert refused(folded, "pin", id="@3 v1") == expected
    assert refused(folded, "pin", id="@3 chars 1-9") == expected


# Refusals


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("activate", "is always in view"),
        ("pin", "is always in view"),
        ("deactivate", "cannot be deactivated"),
        ("unpin", "is not pinned, but always in view"),
    ],
)
@pytest.mark.parametrize(("handle", "type"), [("@1", "system_prompt"), ("@2", "chat")])
def test_locked_objects_refuse_and_say_that_they_are_locked(
    host: Host, handle: str, type: str, tool: str, words: str
) -> None:
    ask(host)
    assert refused(host, tool, id=handle) == f"{handle} is locked: the {type} {words}."


@pytest.mark.parametrize("arguments", [{}, {"id": None}, {"id": True}, {"id": ["@3"]}])
def test_arguments_that_name_nothing_say_what_is_needed(
    folded: Host, arguments: dict[str, Any]
) -> None:
    expected = 'activate needs "id": a handle such as @12, a path, or a nickname.'
    assert refused(folded, "activate", **arguments) == expected


# The decision travels in the result


def test_a_failed_tool_decides_nothing(folded: Host) -> None:
    answer = {**folded.tool("t", "pin", **{"id": "@3"}), "isError": True}
    folded.go_to(folded.leaf())
    folded.add(assistant(calls("t", "pin", **{"id": "@3"})), answer)
    folded.restart()
    folded.call()
    assert members(folded)["pinned"] == set()


@pytest.mark.parametrize(
    "details",
    [
        None,
        "text",
        {"foredeck": None},
        {"foredeck": {"op": "pin"}},
        {"foredeck": {"op": "pin", "ordinal": "3"}},
        {"foredeck": {"op": "pin", "ordinal": 99}},
        {"foredeck": {"op": "pin", "ordinal": 3, "object": "another object"}},
        {"foredeck": {"op": "explode", "ordinal": 3}},
    ],
)
def test_details_that_are_not_ours_decide_nothing(folded: Host, details: Any) -> None:
    answer = result("t", "pin", "pinned, they say", details=details)
    folded.add(assistant(calls("t", "pin", **{"id": "@3"})), answer)
    folded.call()
    assert members(folded)["pinned"] == set()
