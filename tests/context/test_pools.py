"""Layout `pools`: metadata first, references in the chat, the content of what is active last."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context.conftest import NewHost
from context.driver import Host
from context.messages import PIXEL, assistant, calls, image, lines, result, text, thinking
from context.playing import fresh_host, take
from context.scenes import ask, bash, context_tool, finish, use
from context.sent import Sent, as_bytes, as_values
from context.strategies import Script, sound_scripts
from context.test_properties import BOUNDED
from foredeck.context.layouts import WHOLE_CHARS
from foredeck.context.messages.shape import Message
from foredeck.model.quoting import is_reference

FILE = lines(40)
LAYOUT = st.sampled_from(["pools", "pools", "anchored"])
LATE = st.sampled_from([False, False, True])


@pytest.fixture
def host(new_host: NewHost) -> Host:
    """A session under `pools` that the user has begun."""
    host = new_host(layout="pools")
    ask(host)
    return host


def active(sent: Sent) -> list[str]:
    """The texts of the last message, which holds the active content."""
    heading, *texts = [block["text"] for block in sent.prompt[-1]["content"] if "text" in block]
    assert heading == "Content of the active objects:"
    return texts


def pool(sent: Sent) -> list[str]:
    """The lines of the metadata pool."""
    (block,) = sent.prompt[0]["content"]
    return str(block["text"]).split("\n")[1:]


def shown_part(first: int, count: int, id: str) -> tuple[Message, Message]:
    """A read of some lines of FILE, with its result."""
    some = "\n".join(FILE.split("\n")[first - 1 : first - 1 + count])
    more = f"[{40 - first - count + 1} more lines in file. Use offset={first + count} to continue.]"
    call = calls(id, "read", path="a.py", offset=first, limit=count)
    return assistant(call), result(id, "read", f"{some}\n\n{more}")


def test_a_file_stands_once_whole_and_at_the_end(host: Host) -> None:
    sent = use(host, "r1", "read", FILE, path="a.py")
    assert active(sent) == [f"@3\n{FILE}"]
    told = "@3 tool=read status=ok"
    assert sent.text(2) == told
    assert pool(sent)[0] == f"@3 file /repo/a.py chars={len(FILE)}"


def test_both_parts_that_were_read_of_a_file_are_there(host: Host) -> None:
    host.add(*shown_part(1, 10, "r1"), *shown_part(21, 10, "r2"))
    told = "\n".join(active(host.call()))
    assert "line 0:" in told
    assert "line 25:" in told


def test_a_long_file_is_shown_as_far_as_it_was_read(new_host: NewHost, tmp_path: Path) -> None:
    repo = (tmp_path / "repo").resolve()
    repo.mkdir()
    whole = lines(WHOLE_CHARS // 20)
    (repo / "long.py").write_text(whole)
    host = new_host(layout="pools", cwd=str(repo), disk=True)
    ask(host)
    some = "\n".join(whole.split("\n")[:10])
    sent = use(host, "r1", "read", some, path="long.py", limit=10)
    assert active(sent) == [f"@3\n{some}"]


def test_an_image_reaches_the_model(host: Host) -> None:
    sent = use(host, "r1", "read", [text("Read image file [image/png]"), image()], path="a.png")
    assert [block.get("data") for block in sent.prompt[-1]["content"]][-1] == PIXEL
    finish(host)
    host.restart()
    again = ask(host)
    assert [block.get("data") for block in again.prompt[-1]["content"]][-1] == PIXEL


def test_an_old_version_stands_where_it_was_asked_for(host: Host) -> None:
    use(host, "r1", "read", FILE, path="a.py")
    newer = FILE.replace("line 7:", "line seven:")
    use(host, "r2", "read", newer, path="a.py")
    sent = context_tool(host, "t1", "activate", "@3 v1")
    assert sent.text(len(sent.messages) - 1).startswith("@3 v1, not the newest version\n")
    assert active(sent)[0] == f"@3\n{newer}"


def test_an_inactive_object_has_no_content_but_its_metadata(host: Host) -> None:
    bash(host, "c1")
    sent = context_tool(host, "t1", "deactivate", "@3")
    assert sent.prompt[-1]["role"] == "toolResult"
    assert pool(sent)[0] == '@3 toolcall tool=bash status=ok args="run c1"'


def test_the_reference_of_what_is_active_says_which_call_it_was(host: Host) -> None:
    sent = bash(host, "c1")
    assert sent.text(2) == "@3 tool=bash status=ok"
    sent = context_tool(host, "t1", "deactivate", "@3")
    assert is_reference(sent.text(2))
    sent = context_tool(host, "t2", "activate", "@3")
    assert sent.text(2) == "@3 tool=bash status=ok"


def test_active_content_is_stored_once_however_many_calls_hold_it(host: Host) -> None:
    use(host, "r1", "read", lines(200), path="a.py")
    finish(host)
    ask(host)
    records = host.store.query("call")
    assert len(records) == 3
    assert not any("line 100:" in str(record.fields) for record in records)
    assert host.shown(3).messages[-1]["content"][1]["text"] == f"@3\n{lines(200)}"


def test_what_went_out_without_us_takes_the_form_of_the_rest(host: Host) -> None:
    bash(host, "c1")
    host.add(assistant(calls("c2", "bash", command="2")), result("c2", "bash", lines(20, "two")))
    host.off()
    sent = bash(host, "c3")
    assert all(is_reference(sent.text(index)) for index in (2, 4, 6))
    assert [text.split("\n")[0] for text in active(sent)] == ["@3", "@4", "@5"]


def test_what_a_policy_by_use_gives_up_is_no_longer_listed(new_host: NewHost) -> None:
    host = new_host(layout="pools", policy="adaptive", adaptive={"patience": 3})
    ask(host)
    bash(host, "first", lines(100, "first"))
    for number in range(6):
        bash(host, f"next{number}")
    active = {
        host.state.objects.index.entries[n].object for n in host.state.chat.branch.sets.active
    }
    assert "first" not in active
    assert "next5" in active


def sealed(id: str, tool: str, answer: str, **arguments: object) -> tuple[Message, Message]:
    """Signed reasoning and a call, with its result."""
    said = assistant(thinking("a thought", f"seal of {id}"), calls(id, tool, **arguments))
    return said, result(id, tool, answer)


def test_what_sealed_reasoning_is_bound_to_stands_until_its_turn_ends(host: Host) -> None:
    host.add(*sealed("r1", "read", FILE, path="a.py"))
    first = host.call()
    host.add(*sealed("r2", "read", FILE.replace("line 7:", "line seven:"), path="a.py"))
    host.restart()
    second = host.call()
    assert second.prompt[: len(first.prompt)] == first.prompt
    pool_line, heading, content = (block["text"] for block in second.prompt[-1]["content"])
    assert "@3 file /repo/a.py" in pool_line
    assert heading.startswith("Content of active objects that is new, or newer")
    assert content == f"@3\n{FILE.replace('line 7:', 'line seven:')}"
    host.add(*sealed("r3", "read", FILE, path="a.py"))
    assert [block["text"] for block in host.call().prompt[-1]["content"]][-1] == f"@3\n{FILE}"
    finish(host)
    last = ask(host)
    assert active(last) == [f"@3\n{FILE}"]
    assert not any(block["type"] == "thinking" for m in last.prompt for block in blocks_of(m))


@pytest.mark.parametrize("times", [1, 2])
def test_a_call_without_an_answer_keeps_the_content_in_view(host: Host, times: int) -> None:
    host.add(*sealed("r1", "read", FILE, path="a.py"))
    first = host.call()
    for number in range(times):
        host.add(*sealed(f"c{number}", "bash", lines(30), command="x"))
        late = host.lose()
        assert late.prompt[: len(first.prompt)] == first.prompt
        assert late.prompt[len(first.prompt) :] == late.messages[len(first.messages) :]
    host.restart()
    host.add(*sealed("c", "bash", lines(30, "other"), command="y"))
    sent = host.call()
    assert as_values(sent.prompt[: len(late.prompt)]) == as_values(late.prompt)
    assert sent.call is not None
    assert as_values(host.shown(sent.call - 1).messages) == as_values(late.prompt)
    finish(host)
    assert active(ask(host))[0] == f"@3\n{FILE}"


def blocks_of(message: Message) -> list[dict[str, str]]:
    """The content of an assistant message."""
    return message["content"] if message["role"] == "assistant" else []


@pytest.mark.parametrize(("before", "after"), [("anchored", "pools"), ("pools", "anchored")])
def test_another_layout_waits_for_the_end_of_a_turn_with_sealed_reasoning(
    new_host: NewHost, before: str, after: str
) -> None:
    host = new_host(layout=before)
    ask(host)
    host.add(*sealed("r1", "read", FILE, path="a.py"))
    first = host.call()
    host.add(*sealed("r2", "bash", lines(30), command="x"))
    host.restart(layout=after)
    second = host.call()
    assert second.prompt[: len(first.prompt)] == first.prompt
    assert second.record.layout == before
    third = use(host, "r3", "bash", lines(20), command="y")
    assert third.record.layout == before
    if before == "anchored":
        assert third.prompt[: len(second.prompt)] == second.prompt
    finish(host)
    last = ask(host)
    assert last.record.layout == after
    assert last.text(2).startswith("@3 tool=read" if after == "pools" else "@3\n")


@BOUNDED
@given(
    script=sound_scripts(),
    layouts=st.lists(LAYOUT, min_size=11, max_size=11),
    late=st.lists(LATE, min_size=11, max_size=11),
)
def test_sealed_reasoning_goes_out_after_the_bytes_that_it_was_issued_for(
    script: Script, layouts: list[str], late: list[bool]
) -> None:
    with fresh_host(layout=layouts[0]) as host:
        for step, layout, is_late in zip(script, layouts, late, strict=False):
            if layout != host.settings["layout"]:
                host.restart(layout=layout)
            take(host, step)
            if is_late:
                host.lose()
            else:
                host.call()
            check_bound(host.past.sent)


def check_bound(sent: list[Sent]) -> None:
    """Where the newest prompt has sealed reasoning of the turn under way, it stands after the
    prompt that it was the answer to."""
    *earlier, newest = sent
    for index in range(len(newest.messages) - 1, -1, -1):
        message = newest.messages[index]
        if message.get("role") == "user":
            return
        if message not in newest.parts[index] or not is_sealed(message):
            continue
        before = [m for part in newest.parts[:index] for m in part] + newest.parts[index][:-1]
        asked = [old for old in earlier if old.messages == newest.messages[:index]]
        assert not asked or any(as_bytes(old.prompt) == as_bytes(before) for old in asked)


def is_sealed(message: Message) -> bool:
    """Whether a message holds signed or encrypted reasoning."""
    return any(
        block.get("thinkingSignature") not in (None, "reasoning_content")
        for block in blocks_of(message)
    )
