"""A write must not undo what its author has never seen."""

from __future__ import annotations

import os
from typing import Any

import pytest

from file_agent import FileAgent as Agent
from foredeck.timeline.blame import text_of_version
from timeline.conftest import MakeAgent

TEXT = "".join(f"line {n}: the quick brown fox\n" for n in range(40))


def replace_line(number: int, new: str) -> dict[str, Any]:
    """The arguments of an edit of that line."""
    return {"edits": [{"oldText": f"line {number}: the quick brown fox", "newText": new}]}


def save(agent: Agent, text: str, path: str = "a.txt") -> None:
    """A person saves a file, as most editors do: beside it, then in its place."""
    beside = agent.cwd / f".{path}.swp"
    beside.write_text(text)
    beside.replace(agent.cwd / path)


@pytest.fixture
def at_work(agent: Agent) -> Agent:
    """An agent that has read `a.txt`."""
    (agent.cwd / "a.txt").write_text(TEXT)
    agent.read("a.txt")
    return agent


def test_a_write_over_a_persons_change_is_answered_with_the_difference(at_work: Agent) -> None:
    save(at_work, TEXT.replace("line 7:", "line seven:"))
    blocked = at_work.run("write", path="a.txt", content="mine\n")["block"]
    assert "\n -line 7: the quick brown fox\n +line seven: the quick brown fox\n" in blocked
    assert "line seven" in (at_work.cwd / "a.txt").read_text()
    assert at_work.run("write", path="a.txt", content="mine\n") == {}
    assert (at_work.cwd / "a.txt").read_text() == "mine\n"


def test_an_edit_next_to_a_change_is_answered_and_one_away_from_it_passes(at_work: Agent) -> None:
    save(at_work, TEXT.replace("line 7:", "line seven:"))
    assert "block" in at_work.prepare("edit", path="a.txt", **replace_line(8, "x"))[1]
    verdict = at_work.run("edit", path="a.txt", **replace_line(20, "line 20"))
    assert "block" not in verdict
    assert "+line seven:" in verdict["notice"]
    text = (at_work.cwd / "a.txt").read_text()
    assert "line seven:" in text
    assert "line 20\n" in text
    assert at_work.run("write", path="a.txt", content="all new\n") == {}


def test_calls_of_one_answer_are_refused_alike(at_work: Agent) -> None:
    save(at_work, TEXT.replace("line 7:", "line seven:"))
    for content in ("one\n", "two\n"):
        assert "block" in at_work.prepare("write", path="a.txt", content=content)[1]
    at_work.answer()
    assert at_work.run("write", path="a.txt", content="one\n") == {}


def test_the_agents_own_changes_never_trip_it(at_work: Agent) -> None:
    assert at_work.run("edit", path="a.txt", **replace_line(3, "three")) == {}
    assert at_work.run("write", path="a.txt", content=TEXT) == {}
    assert at_work.run("bash", command="for f in *.t*; do tr a-z A-Z <$f >x; mv x $f; done") == {}
    assert (at_work.cwd / "a.txt").read_text() == TEXT.upper()
    assert at_work.run("write", path="a.txt", content=TEXT) == {}
    assert at_work.run("bash", command="rm -f *.txt") == {}
    assert at_work.run("write", path="a.txt", content="back\n") == {}


def test_calls_prepared_together_are_the_agents_own(at_work: Agent) -> None:
    first, second = replace_line(3, "three"), replace_line(4, "four")
    one, ok = at_work.prepare("edit", path="a.txt", **first)
    two, also_ok = at_work.prepare("edit", path="a.txt", **second)
    assert (ok, also_ok) == ({}, {})
    at_work.finish(one, "edit", path="a.txt", **first)
    at_work.finish(two, "edit", path="a.txt", **second)
    at_work.answer()
    assert at_work.run("write", path="a.txt", content="x\n") == {}


def test_a_change_before_a_command_is_not_taken_for_the_commands(at_work: Agent) -> None:
    save(at_work, TEXT.replace("line 7:", "line seven:"))
    assert at_work.run("bash", command="sed -i s/fox/cat/ *.txt") == {}
    blocked = at_work.run("write", path="a.txt", content="mine\n")["block"]
    assert "+line seven: the quick brown cat" in blocked


def test_what_a_person_saves_between_check_and_write_is_found(at_work: Agent) -> None:
    arguments = {"path": "a.txt", **replace_line(3, "three")}
    id, _ = at_work.prepare("edit", **arguments)
    save(at_work, TEXT.replace("line 30:", "line thirty:"))
    at_work.finish(id, "edit", **arguments)
    at_work.answer()
    assert "+line thirty:" in at_work.run("write", path="a.txt", content="mine\n")["block"]


def test_what_is_saved_after_a_read_has_shown_the_file_is_found(agent: Agent) -> None:
    save(agent, TEXT.replace("line 7:", "line seven:"))
    agent.read("a.txt", shown=TEXT)
    assert "+line seven:" in agent.run("write", path="a.txt", content="mine\n")["block"]


def test_a_file_that_was_only_touched_or_saved_as_it_was_passes(at_work: Agent) -> None:
    os.utime(at_work.cwd / "a.txt")
    save(at_work, TEXT)
    assert at_work.run("write", path="a.txt", content="mine\n") == {}


def test_a_file_that_was_deleted_is_named_and_made_again_on_request(at_work: Agent) -> None:
    (at_work.cwd / "a.txt").unlink()
    blocked = at_work.run("write", path="a.txt", content="mine\n")["block"]
    assert "was deleted since you last saw it, and not by you" in blocked
    assert at_work.run("write", path="a.txt", content="mine\n") == {}


def test_a_file_that_the_agent_has_never_seen_is_left_to_the_tool(agent: Agent) -> None:
    save(agent, TEXT)
    assert agent.run("write", path="a.txt", content="mine\n") == {}


def test_the_difference_is_short_and_says_what_it_leaves_out(at_work: Agent) -> None:
    save(at_work, TEXT.replace("line", "this is a much longer line than before"))
    blocked = at_work.run("write", path="a.txt", content="mine\n")["block"]
    assert len(blocked) < 2000
    assert "more lines differ)" in blocked


def test_another_sessions_write_is_found(make_agent: MakeAgent) -> None:
    one, two = make_agent("one"), make_agent("two")
    (one.cwd / "a.txt").write_text(TEXT)
    one.read("a.txt")
    two.read("a.txt")
    assert one.run("edit", path="a.txt", **replace_line(3, "three")) == {}
    assert "+three" in two.run("write", path="a.txt", content=TEXT)["block"]


def test_another_sessions_write_while_a_command_runs_is_not_the_commands(
    make_agent: MakeAgent,
) -> None:
    one, two = make_agent("one"), make_agent("two")
    (one.cwd / "a.txt").write_text(TEXT)
    one.read("a.txt")
    two.read("a.txt")
    id, _ = one.prepare("bash", command="true")
    assert two.run("edit", path="a.txt", **replace_line(3, "three")) == {}
    one.finish(id, "bash", command="true")
    one.answer()
    assert "+three" in one.run("write", path="a.txt", content=TEXT)["block"]


def test_while_one_session_writes_another_waits(make_agent: MakeAgent) -> None:
    one, two = make_agent("one"), make_agent("two")
    (one.cwd / "a.txt").write_text(TEXT)
    one.prepare("write", path="a.txt", content="1\n")
    assert "another session is writing" in two.run("write", path="a.txt", content="2\n")["block"]
    one.answer()  # it was stopped, and never ran
    assert two.run("write", path="a.txt", content="2\n") == {}


def test_a_lock_that_is_held_too_long_counts_as_free(
    make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = make_agent("one"), make_agent("two")
    one.prepare("write", path="a.txt", content="1\n")
    monkeypatch.setattr("foredeck.timeline.guard.HOLD_S", -1.0)
    assert two.run("write", path="a.txt", content="2\n") == {}


def test_what_the_agent_knows_outlives_the_engine(make_agent: MakeAgent) -> None:
    first = make_agent()
    (first.cwd / "a.txt").write_text(TEXT)
    first.read("a.txt")
    session = first.engine.opened.session
    head = session.objects.store.head(session.objects.source.identify(str(first.cwd / "a.txt"))[0])
    assert head is not None
    session.objects.see_head(head)  # as the next prompt does
    session.objects.workspace.commit()
    save(first, TEXT.replace("line 7:", "line seven:"))
    assert "block" in first.prepare("write", path="a.txt", content="x")[1]
    first.close()
    again = make_agent()
    blocked = again.run("write", path="a.txt", content="mine\n")["block"]
    assert f"@1 {first.cwd / 'a.txt'} was changed" in blocked
    assert "+line seven:" in blocked


@pytest.mark.parametrize("mode", ["warn", "off"])
def test_it_warns_or_does_nothing_where_it_is_told_to(make_agent: MakeAgent, mode: str) -> None:
    agent = make_agent(guard=mode)
    (agent.cwd / "a.txt").write_text(TEXT)
    agent.read("a.txt")
    save(agent, TEXT.replace("line 7:", "line seven:"))
    verdict = agent.run("write", path="a.txt", content="mine\n")
    assert "block" not in verdict
    assert ("+line seven:" in verdict.get("notice", "")) == (mode == "warn")


def test_a_save_that_a_write_replaced_is_kept_and_named_where_it_was_seen(at_work: Agent) -> None:
    at_work.answer()
    arguments = {"path": "a.txt", "content": "mine\n"}
    id, verdict = at_work.prepare("write", **arguments)
    assert verdict == {}
    opened = at_work.engine.opened
    opened.guard.saw([str(at_work.cwd / "a.txt")])  # nothing has happened yet
    save(at_work, "theirs\n")
    opened.guard.saw([str(at_work.cwd / "a.txt")])
    (at_work.cwd / "a.txt").write_text("mi")
    opened.guard.saw([str(at_work.cwd / "a.txt")])  # the write itself, half-way
    at_work.finish(id, "write", **arguments)
    at_work.answer()
    store = opened.session.objects.store
    object_id = opened.session.objects.index.entries[at_work.ordinal("a.txt")].object
    texts = [text_of_version(store, head) for head in store.history(object_id)]
    assert texts == [TEXT, "theirs\n", "mine\n"]
    assert "Something else saved @" in at_work.prompt
    assert f'activate "@{at_work.ordinal("a.txt")} v2"' in at_work.prompt
    assert at_work.run("write", path="a.txt", content="again\n") == {}
