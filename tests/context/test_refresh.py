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


def test_a_later_read_is_compared_with_what_is_shown(new_host: NewHost) -> None:
    host = edited(new_host)
    go_cold(host)
    sent = use(host, "r2", "read", NEW, path="a.py")
    assert sent.text(len(sent.messages) - 1) == "Unchanged: the same as @3 above."
    more = NEW.replace("added 1", "more 1", 1)
    edit(host, "e2", "added 1", "more 1")
    sent = use(host, "r3", "read", more, path="a.py")
    told = sent.text(len(sent.messages) - 1)
    assert told.startswith("@3 v3, changed since the copy above:\n")
    assert "+more 1" in told
    assert len(told) < 300


def test_a_receipt_shrinks_once_it_is_old(new_host: NewHost) -> None:
    host = new_host(policy="adaptive", adaptive={"patience": 1, "patience_edited": 1})
    ask(host)
    use(host, "r1", "read", OLD, path="a.py")
    edit(host, "e1", FIRST, "new")
    for number in range(3):
        finish(host)
        ask(host, f"Go on, {number}.")
    assert go_cold(host).text(4) == "@5 done"


def test_what_a_writer_says_beside_that_is_kept_as_any_output(new_host: NewHost) -> None:
    host = new_host(policy="adaptive", adaptive={"patience": 1, "patience_edited": 1})
    ask(host)
    use(host, "r1", "read", OLD, path="a.py")
    edit(host, "e1", FIRST, "new", RECEIPT + lines(60, "diff"))
    for number in range(3):
        finish(host)
        ask(host, f"Go on, {number}.")
    assert go_cold(host).text(4).startswith("@5 folded: ")


def test_another_branch_has_reads_of_its_own(new_host: NewHost) -> None:
    """Though as much is known of the file there: as many versions, in a read of the same length."""
    changed = FIRST.replace("old", "new")
    now = OLD.replace(FIRST, changed)
    host = new_host(policy="adaptive")
    ask(host)
    use(host, "b1", "bash", "ok", command="true")
    use(host, "r1", "read", OLD, path="a.py")
    edit(host, "e1", FIRST, changed)
    host.back(1)
    use(host, "r2", "read", now, path="a.py")
    edit(host, "e2", lines(30, "absent"), lines(30, "lost"), "Could not find the text.")
    use(host, "w1", "write", "Written.", path="b.py", content=lines(30, "written"))
    sent = go_cold(host)
    assert sent.text(4) == "Could not find the text."
