"""One current copy of each file at work, after a pause, and reads that take in later edits."""

from __future__ import annotations

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import ask, context_tool, finish, later, outputs, use
from context.sent import Sent, last

OLD = lines(60, "old")
FIRST = "\n".join(OLD.split("\n")[:30])
ADDED = lines(30, "added")
NEW = OLD.replace(FIRST, ADDED, 1)
RECEIPT = "Successfully replaced text in a.py. Changed 11 characters to 300 characters."


def edit(host: Host, id: str, old: str, new: str, answer: str = RECEIPT) -> Sent:
    edits = [{"oldText": old, "newText": new}]
    return use(host, id, "edit", answer, path="a.py", edits=edits)


def edited(new_host: NewHost, **adaptive: int) -> Host:
    """A session that has written a.py, which is @3, and then changed half of it."""
    host = new_host(policy="adaptive", adaptive={"fold_runs_after": 0, **adaptive})
    ask(host)
    use(host, "w1", "write", "Successfully wrote 2209 bytes to a.py", path="a.py", content=OLD)
    edit(host, "e1", FIRST, ADDED)
    return host


def test_the_newest_result_shows_the_file_and_the_rest_folds(new_host: NewHost) -> None:
    host = edited(new_host)
    sent = later(host)
    assert sent.text(4) == f"@3 v2, with the later edits\n{NEW}"
    assert "chars folded>" in str(sent.parts[1])
    assert str(sent.prompt).count("added 20") == 1
    host.restart()
    assert [ask(host).text(n) for n in range(5)] == [sent.text(n) for n in range(5)]


def test_a_read_takes_in_the_edits_that_were_made(new_host: NewHost) -> None:
    host = new_host(policy="adaptive")
    ask(host)
    use(host, "r1", "read", OLD, path="a.py")
    edit(host, "e1", FIRST, ADDED)
    edit(host, "e2", "not there", lines(30, "lost"), "Could not find the text.")
    sent = later(host)
    assert sent.text(2) == f"@3 v2, with the later edits\n{NEW}"
    assert ADDED not in str(sent.parts[3])
    assert lines(30, "lost") in str(sent.parts[5]).replace("\\n", "\n")
    host.restart()
    assert ask(host).text(2) == sent.text(2)


def test_it_folds_as_a_whole_once_the_session_has_left_the_file(new_host: NewHost) -> None:
    host = edited(new_host, patience=3, patience_edited=6)
    later(host)
    leave(host)
    sent = later(host)
    assert sent.text(4).startswith("@3 folded: ")
    sent = context_tool(host, "a1", "activate", "@3")
    assert last(sent).endswith(NEW)


def leave(host: Host) -> None:
    """Work on for so long that a.py is no longer at work."""
    outputs(host, 21)
    for number in range(3):
        finish(host)
        ask(host, f"Something else, {number}.")


@pytest.mark.parametrize("off", [{"copy_chars": 0}, {"at_work": 0}, {"copy_chars": 200}])
def test_it_can_be_switched_off(new_host: NewHost, off: dict[str, int]) -> None:
    assert "with the later edits" not in str(later(edited(new_host, **off)).prompt)
