"""Reads of edited files, brought up to date at a rebase, and receipts."""

from __future__ import annotations

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import ask, finish, use
from context.sent import Sent

OLD = lines(60, "old")
ADDED = lines(30, "added")
FIRST = "\n".join(OLD.split("\n")[:30])
NEW = OLD.replace(FIRST, ADDED, 1)
RECEIPT = "Successfully replaced text in a.py. Changed 11 characters to 300 characters."


def edit(host: Host, id: str, old: str, new: str, answer: str = RECEIPT) -> Sent:
    edits = [{"oldText": old, "newText": new}]
    return use(host, id, "edit", answer, path="a.py", edits=edits)


def go_cold(host: Host) -> Sent:
    finish(host)
    host.wait(600)
    return ask(host)


def edited(new_host: NewHost, **adaptive: bool) -> Host:
    """A session that has read a.py, which is @3, and then put `ADDED` in place of half of it."""
    host = new_host(policy="adaptive", adaptive=adaptive)
    ask(host)
    use(host, "r1", "read", OLD, path="a.py")
    edit(host, "e1", FIRST, ADDED)
    return host


def test_the_read_takes_in_the_edit_and_its_argument_folds(new_host: NewHost) -> None:
    host = edited(new_host)
    sent = go_cold(host)
    assert sent.text(2) == f"@3 v2, with the later edits\n{NEW}"
    assert "chars folded>" in str(sent.parts[3])
    assert ADDED not in str(sent.parts[3])
    host.restart()
    assert ask(host).text(2) == sent.text(2)


def test_not_before_a_rebase(new_host: NewHost) -> None:
    host = edited(new_host)
    finish(host)
    sent = ask(host)
    assert sent.text(2) == f"@3\n{OLD}"
    assert "chars folded>" not in str(sent.prompt)


def test_an_argument_that_does_not_stand_in_the_file_stays(new_host: NewHost) -> None:
    host = edited(new_host)
    edit(host, "e2", "not there", lines(30, "lost"), "Could not find the text.")
    sent = go_cold(host)
    assert sent.text(2).endswith(NEW)
    assert lines(30, "lost") in str(sent.parts[5]).replace("\\n", "\n")


def test_what_a_writer_says_beside_that_is_kept_as_any_output(new_host: NewHost) -> None:
    host = new_host(policy="adaptive", adaptive={"patience": 1, "patience_edited": 1})
    ask(host)
    use(host, "r1", "read", OLD, path="a.py")
    edit(host, "e1", FIRST, "new", RECEIPT + lines(60, "diff"))
    for number in range(3):
        finish(host)
        ask(host, f"Go on, {number}.")
    assert go_cold(host).text(4).startswith("@5 folded: ")
