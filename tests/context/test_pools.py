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
from context.scenes import ask, context_tool, finish, go_on, use
from context.sent import Sent, as_bytes, last
from context.strategies import Script, sound_scripts
from context.test_properties import BOUNDED
from foredeck.context.calls import deciding
from foredeck.context.layouts import WHOLE_CHARS
from foredeck.context.messages.shape import Message

FILE = lines(40)
LAYOUT = st.sampled_from(["pools", "pools", "anchored"])
LATE = st.sampled_from([False, False, True])


@pytest.fixture
def host(new_host: NewHost) -> Host:
    """A session under `pools` that the user has begun."""
    return new_host(layout="pools").begin()


def active(sent: Sent) -> list[str]:
    """The texts of the last message, which holds the active content."""
    heading, *texts = [block["text"] for block in sent.prompt[-1]["content"] if "text" in block]
    assert heading == "Content of the active objects:"
    return texts


def pool(sent: Sent) -> list[str]:
    """The lines of the metadata pool."""
    (block,) = sent.prompt[0]["content"]
    return str(block["text"]).split("\n")[1:]


def test_a_file_stands_once_whole_and_at_the_end(host: Host) -> None:
    sent = use(host, "r1", "read", FILE, path="a.py")
    assert active(sent) == [f"@3\n{FILE}"]
    told = "@3 tool=read status=ok"
    assert sent.text(2) == told
    assert pool(sent)[0] == f"@3 file /repo/a.py chars={len(FILE)}"


def test_a_long_file_is_shown_as_far_as_it_was_read(new_host: NewHost, tmp_path: Path) -> None:
    repo = (tmp_path / "repo").resolve()
    repo.mkdir()
    whole = lines(WHOLE_CHARS // 20)
    (repo / "long.py").write_text(whole)
    host = new_host(layout="pools", cwd=str(repo), disk=True).begin()
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
    assert last(sent).startswith("@3 v1, not the newest version\n")
    assert active(sent)[0] == f"@3\n{newer}"


def test_output_of_commands_leaves_at_the_high_water_mark_the_least_recently_used_first(
    host: Host,
) -> None:
    host.set_window(10_000)
    for number in range(5):
        sent = use(host, f"b{number}", "bash", lines(200, str(number)), command=f"make {number}")
    assert sent.decision.reason == "high-water"
    assert [block.split("\n")[1].split()[0] for block in active(sent)] == ["3", "4"]


def test_a_file_read_again_is_as_recently_used_as_its_newest_read(new_host: NewHost) -> None:
    host = new_host(layout="pools", policy="keep-all")
    host.set_window(10_000)
    ask(host)
    file = lines(200, "row")
    use(host, "r1", "read", file, path="a.py")
    for number in range(3):
        use(host, f"b{number}", "bash", lines(200, str(number)), command=f"make {number}")
    both = calls("r2", "read", path="a.py"), calls("b3", "bash", command="make 3")
    host.add(assistant(*both), result("r2", "read", file), result("b3", "bash", lines(200, "3")))
    sent = host.call()
    assert sent.decision.reason == "high-water"
    assert f"@3\n{file}" in active(sent)


@pytest.mark.parametrize("window", [None, 200_000])
def test_what_cannot_leave_is_not_measured(
    host: Host, window: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []
    monkeypatch.setattr(deciding, "active_content", lambda _context, n: measured.append(n) or [])
    host.model = {**(host.model or {}), "contextWindow": window}
    use(host, "r1", "read", FILE, path="a.py")
    assert not measured


def test_active_content_is_stored_once_however_many_calls_hold_it(host: Host) -> None:
    use(host, "r1", "read", lines(200), path="a.py")
    go_on(host)
    records = host.store.query("call")
    assert len(records) == 3
    assert not any("line 100:" in str(record.fields) for record in records)
    assert host.shown(3).messages[-1]["content"][1]["text"] == f"@3\n{lines(200)}"


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
    after = go_on(host)
    assert active(after) == [f"@3\n{FILE}"]
    assert not any(block["type"] == "thinking" for m in after.prompt for block in blocks_of(m))


def blocks_of(message: Message) -> list[dict[str, str]]:
    """The content of an assistant message."""
    return message["content"] if message["role"] == "assistant" else []


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
