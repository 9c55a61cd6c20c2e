"""A visible file that something other than the agent has changed is announced, once."""

from __future__ import annotations

import pytest

from context.conftest import NewHost
from context.messages import assistant, calls, lines, result
from context.scenes import ask, bash, context_tool, finish, go_on, later
from context.sent import Sent
from context.working import Work
from foredeck.model.quoting import is_reference

OLD, NEW = lines(30, "old"), lines(30, "new")


@pytest.fixture
def work(work: Work) -> Work:
    """An agent that has read a.py; it is @3."""
    work.file("a.py", OLD)
    ask(work.host)
    assert work.read("a.py").text(2).startswith("@3\n")
    finish(work.host)
    return work


def notices(sent: Sent) -> list[tuple[int, str]]:
    """Messages with the notices that they carry, in words."""
    texts = enumerate(map(sent.text, range(len(sent.messages))))
    lines = ((index, line) for index, text in texts for line in text.split("\n"))
    return [each for each in lines if each[1].startswith("[foredeck]")]


def changed(work: Work, index: int) -> tuple[int, str]:
    return index, f"[foredeck] @3 {work.folder / 'a.py'} changed on disk: the copy above is old."


def test_it_stands_on_the_newest_message_as_a_block_of_its_own(work: Work) -> None:
    work.change("a.py", NEW)
    sent = ask(work.host, "What now?")
    assert notices(sent) == [changed(work, 4)]
    (out,) = sent.parts[4]
    assert next(block["text"] for block in out["content"]) == "What now?"
    assert len(out["content"]) == 2


def test_two_changes_before_one_call_are_one_notice(work: Work) -> None:
    work.change("a.py", "first")
    work.change("a.py", NEW)
    assert notices(ask(work.host)) == [changed(work, 4)]


def test_a_further_change_gets_another_notice(work: Work) -> None:
    work.change("a.py", "first")
    ask(work.host)
    finish(work.host)
    work.change("a.py", NEW)
    assert notices(ask(work.host)) == [changed(work, 4), changed(work, 6)]


def test_a_watcher_that_is_faster_than_the_agents_own_write_tells_nothing(work: Work) -> None:
    ask(work.host)
    work.change("a.py", NEW)
    assert notices(work.run("write", "Wrote it.", path="a.py", content=NEW)) == []


def test_a_write_that_a_dead_engine_saw_is_never_announced(work: Work) -> None:
    """The engine after it takes the change for news until the result comes; the next one too."""
    ask(work.host)
    work.file("a.py", NEW)
    done = result("w9", "write", "Wrote it.")
    work.host.observe(done, {"path": "a.py", "content": NEW})
    work.host.restart()
    work.host.add(assistant(calls("w9", "write", path="a.py", content=NEW)), done)
    assert notices(work.host.call()) == []
    work.host.restart()
    assert notices(bash(work.host, "b1")) == []


def test_a_file_that_was_read_again_meanwhile_is_not_announced(work: Work) -> None:
    ask(work.host)
    work.change("a.py", NEW)
    assert notices(work.read("a.py")) == []


def test_a_change_by_one_of_the_agents_commands_is_announced(work: Work) -> None:
    ask(work.host)
    work.file("a.py", NEW)
    sent = work.run("bash", "reformatted a.py", command="format a.py")
    assert notices(sent) == [changed(work, 6)]


def test_a_file_that_is_not_in_view_is_not_announced(work: Work) -> None:
    ask(work.host)
    context_tool(work.host, "t", "deactivate", "a.py")
    assert is_reference(later(work.host).text(2))
    work.change("a.py", NEW)
    assert notices(go_on(work.host)) == []


def test_a_file_that_was_only_listed_is_not_announced(work: Work) -> None:
    work.file("b.py", OLD)
    ask(work.host)
    work.run("ls", "a.py\nb.py", path=".")
    work.change("b.py", NEW)
    assert notices(go_on(work.host)) == []


def test_a_change_that_was_seen_and_not_yet_announced_survives_a_restart(work: Work) -> None:
    work.change("a.py", NEW)
    work.host.restart()
    assert notices(ask(work.host)) == [changed(work, 4)]


def test_a_change_that_was_announced_is_not_announced_again_after_a_restart(work: Work) -> None:
    work.change("a.py", NEW)
    ask(work.host)
    work.host.restart()
    assert notices(go_on(work.host)) == [changed(work, 4)]


def test_a_change_that_another_session_saw_first_is_announced_here_too(
    work: Work, new_host: NewHost
) -> None:
    other = Work(new_host(session="other", cwd=work.host.cwd, disk=True))
    ask(other.host)
    work.file("a.py", NEW)
    other.read("a.py")
    work.notice_changes()
    assert notices(ask(work.host)) == [changed(work, 4)]


def test_an_activation_after_a_change_brings_what_stands_on_disk(work: Work) -> None:
    ask(work.host)
    work.file("a.py", NEW)
    sent = context_tool(work.host, "t", "activate", "a.py")
    assert sent.text(6) == f"@3 v2, replaces the older copy above\n{NEW}"


def test_it_waits_for_a_message_that_goes_out(work: Work) -> None:
    work.change("a.py", NEW)
    work.host.add(result("nobody", "bash", "left out"))
    assert notices(work.host.call()) == []
    assert notices(ask(work.host)) == [changed(work, 5)]
