"""A renamed file stays what it was to the model: announced once, in view, pinned, by its name."""

from __future__ import annotations

import pytest

from context.messages import lines, user
from context.scenes import ask, command_text, context_tool, finish, later
from context.sent import Sent, last
from context.test_notices import notices
from context.test_tools import said
from context.working import Work
from foredeck.context.state.descriptions import give_nickname, nicknames

TEXT = lines(40)


@pytest.fixture
def work(work: Work) -> Work:
    """An agent that has read a.py (@3) in a turn that is over."""
    work.file("a.py", TEXT)
    ask(work.host)
    work.read("a.py")
    finish(work.host)
    return work


def move(work: Work, old: str, new: str) -> None:
    """A person renames a file, and the watcher sees it."""
    target = work.folder / new
    target.parent.mkdir(parents=True, exist_ok=True)
    (work.folder / old).rename(target)
    work.notice_changes()


def newest_notices(work: Work, sent: Sent | None = None) -> list[str]:
    """The notices on the newest message, without the folder; the user goes on unless `sent`."""
    sent = sent or ask(work.host)
    newest = len(sent.messages) - 1
    return [line.replace(f"{work.folder}/", "") for at, line in notices(sent) if at == newest]


def sets(work: Work) -> dict[str, set[int]]:
    own = work.host.state.chat.branch.sets
    return {"pool": {3, 5} & own.pool, "active": {3, 5} & own.active, "pinned": {3, 5} & own.pinned}


MOVED = ["[foredeck] @3 moved to b.py, which is @5."]
FIRST, SECOND = ({name: {ordinal} for name in ("pool", "active", "pinned")} for ordinal in (3, 5))


@pytest.mark.parametrize("command", ["mv a.py b.py", "git mv a.py b.py"])
def test_the_agents_own_rename_is_announced_as_one(work: Work, command: str) -> None:
    ask(work.host)
    (work.folder / "a.py").rename(work.folder / "b.py")
    sent = work.run("bash", "", command=command)
    assert newest_notices(work, sent) == MOVED
    finish(work.host)
    work.notice_changes()
    assert newest_notices(work) == []


def test_what_is_in_view_is_the_new_files(work: Work) -> None:
    move(work, "a.py", "b.py")
    ask(work.host)
    assert sets(work) == {**SECOND, "pinned": set()}
    assert said(work.host, "activate", "b.py") == "@5 is above."
    assert last(work.read("b.py")) == "Unchanged: the same as @5 above."
    work.host.restart()
    ask(work.host)
    assert sets(work)["active"] == {5}
    assert said(work.host, "activate", "@5") == "@5 is above."


def test_a_pin_goes_along(work: Work) -> None:
    ask(work.host)
    context_tool(work.host, "p", "pin", "@3")
    finish(work.host)
    assert sets(work) == FIRST
    move(work, "a.py", "b.py")
    ask(work.host)
    pinned = work.host.state.objects.index.by_label[str(work.folder / "b.py")]
    assert work.host.state.chat.branch.sets.pinned == {pinned}
    assert TEXT in later(work.host).text(2)
    assert work.host.state.chat.branch.sets.pinned == {pinned}


def test_the_nickname_goes_along(work: Work) -> None:
    host = work.host
    head = host.store.head(host.state.objects.index.entries[3].object)
    assert head is not None
    give_nickname(host.store, head, "spec")
    move(work, "a.py", "b.py")
    ask(host)
    assert said(host, "activate", "spec") == "@5 is above."
    assert nicknames(host.store) == {host.state.objects.index.entries[5].object: "spec"}
    assert give_nickname(
        host.store,
        host.store.heads([host.state.objects.index.entries[5].object]).popitem()[1],
        "plan",
    )


def test_the_users_list_says_what_is_gone(work: Work) -> None:
    work.file("c.py", TEXT.replace("line", "other line"))
    work.read("c.py")
    move(work, "a.py", "b.py")
    (work.folder / "c.py").unlink()
    work.notice_changes()
    text = command_text(work.host, "view")
    ends = {line.split()[0]: line.rpartition("  ")[2] for line in text.splitlines()}
    assert (ends["@3"], ends["@5"]) == ("a.py, moved", "c.py, deleted")


def test_a_file_that_has_a_name_keeps_it_when_another_is_renamed_to_it(work: Work) -> None:
    host = work.host
    work.file("b.py", "short")
    work.read("b.py")
    for handle, name in (("@3", "spec"), ("@5", "plan")):
        command_text(host, "name", f"{handle} {name}")
    finish(host)
    move(work, "a.py", "b.py")
    ask(host)
    entries = host.state.objects.index.entries
    assert nicknames(host.store) == {entries[3].object: "spec", entries[5].object: "plan"}


def test_naming_is_no_version_for_the_session(work: Work) -> None:
    command_text(work.host, "name", "@3 spec")
    work.host.restart()
    ask(work.host)
    work.read("a.py")
    assert work.host.state.objects.index.entries[3].newest.version == 1


def test_the_old_handle_says_where_the_file_is(work: Work) -> None:
    move(work, "a.py", "b.py")
    ask(work.host)
    assert said(work.host, "activate", "@3") == (
        "@3 has no content to show: it moved, activate @5 instead."
    )
    assert said(work.host, "pin", "@3").endswith("it moved, activate @5 instead.")
    assert sets(work) == {**SECOND, "pinned": set()}
    assert said(work.host, "activate", "@3 v1") == TEXT


def test_a_rename_of_what_has_changed_since_says_so(work: Work) -> None:
    work.file("a.py", lines(40, "other"))
    work.notice_changes()
    move(work, "a.py", "b.py")
    assert newest_notices(work) == [MOVED[0][:-1] + ": the copy above is old."]


def test_a_file_that_nobody_sees_moves_without_a_word(work: Work) -> None:
    ask(work.host)
    context_tool(work.host, "d", "deactivate", "@3")
    assert "@3 folded: " in later(work.host).text(2)
    finish(work.host)
    move(work, "a.py", "b.py")
    assert newest_notices(work) == []


def test_it_is_announced_again_where_the_call_never_went_out(work: Work) -> None:
    move(work, "a.py", "b.py")
    work.host.add(user("Go on."))
    work.host.abort()
    assert newest_notices(work) == MOVED
    assert sets(work)["active"] == {5}
