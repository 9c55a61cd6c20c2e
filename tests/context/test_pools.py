"""Layout `pools`: metadata first, references in the chat, the content of what is active last."""

from __future__ import annotations

from pathlib import Path

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import PIXEL, assistant, calls, image, lines, result, text
from context.scenes import ask, bash, context_tool, finish, use
from context.sent import Sent
from foredeck.context.rendering.pools import WHOLE_CHARS
from foredeck.context.state.nicknames import give_nickname
from foredeck.hosts.pi.messages import Message

FILE = lines(40)


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
    told = f'toolcall_ref id=@3 tool=read status=ok args="a.py" chars={len(FILE)} lines=1-40'
    assert sent.text(2) == told
    assert pool(sent)[0] == f"@3 file /repo/a.py chars={len(FILE)}"


def test_an_edit_shows_in_the_content(host: Host) -> None:
    use(host, "r1", "read", FILE, path="a.py")
    edit = {"path": "a.py", "edits": [{"oldText": "line 7:", "newText": "line seven:"}]}
    sent = use(host, "e1", "edit", "Successfully replaced 1 block(s) in a.py.", **edit)
    assert active(sent)[0] == f"@3\n{FILE.replace('line 7:', 'line seven:')}"


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


def test_a_nickname_stands_in_the_metadata(host: Host) -> None:
    bash(host, "c1")
    head = host.store.head("c1")
    assert head is not None
    give_nickname(host.store, head, "build")
    finish(host)
    assert pool(ask(host))[0].endswith(" name=build")


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
    assert all(sent.text(index).startswith("toolcall_ref") for index in (2, 4, 6))
    assert [text.split("\n")[0] for text in active(sent)] == ["@3", "@4", "@5"]


def test_what_a_policy_by_use_gives_up_is_no_longer_listed(new_host: NewHost) -> None:
    host = new_host(layout="pools", policy="adaptive", adaptive={"patience": 3})
    ask(host)
    bash(host, "first", lines(100, "first"))
    for number in range(6):
        bash(host, f"next{number}")
    active = {host.state.index.entries[n].object for n in host.state.sets.active}
    assert "first" not in active
    assert "next5" in active
