"""Observing from beginning to end: once or not at all, by whoever is first."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import sys

import pytest

from foredeck.errors import ForedeckError
from foredeck.observations.lease import (
    LEASE_MS,
    ObservingBusy,
    ObservingFailed,
    ObservingLease,
    is_gone,
    owner_name,
)
from foredeck.observations.observers import ModelFreeObserver, ModelReply
from foredeck.observations.reading import stored_notes
from foredeck.store.clock import DAY_MS
from foredeck.store.store import Store
from observations.chat import answer, result, rounds, user
from observations.desk import (
    CLOCK,
    MODE,
    NOTES,
    Time,
    block,
    count,
    keeper,
    kept,
    noted,
    observe,
    observer,
    pick,
    reflect,
)


def test_an_observation_is_kept_with_what_it_covers(store: Store) -> None:
    document = observe(store)
    assert document is not None
    (found,) = kept(store)
    assert found.document.covers == [m.address for m in [user("look at all of them"), *rounds(3)]]
    assert found.text == "2026-05-03\n- 09:20 medium change: Agent looked at src/c0.py"
    assert found.document.files == ["src/c0.py"]
    assert found.document.current_task == "Look at all."
    assert (found.document.covered_tokens, found.document.model) == (3004, "test/model")
    assert found.document.provenance.generator == "agent"


@pytest.mark.parametrize(
    ("answered", "told"),
    [
        ("", "of no use: there is no note in it"),
        ("I will not do that.", '"I will not do that." is neither a date nor a note'),
        (ModelReply("", calls=1), "it calls a tool"),
        (ModelReply(NOTES.partition("Agent")[0], stop="length"), "no note in it"),
        (block(*[f"low change: {n} {'x' * 3000}" for n in range(6)]), "is longer"),
        (ForedeckError("rate limit exceeded"), "rate limit"),
    ],
)
def test_what_fails_leaves_everything_as_it_was(
    store: Store, answered: str | ModelReply | Exception, told: str
) -> None:
    writer, _ = observer(answered)
    with pytest.raises(ForedeckError, match=told):
        asyncio.run(keeper(store).observe([user("go"), *rounds(3)], pick, writer, MODE))
    assert kept(store) == []
    assert observe(store) is not None, "the lease was given back"


def test_an_answer_of_which_little_can_be_read_is_asked_for_once_more(store: Store) -> None:
    rubbish = "The agent looked at three files.\n\nIt found nothing."
    writer, asked = observer(rubbish, f"{NOTES}\n- A last word")
    chat = [user("look at all of them"), *rounds(3)]
    found = asyncio.run(keeper(store).observe(chat, pick, writer, MODE))
    assert [remark.content for remark in found.remarks] == ["Agent looked at src/c0.py"]
    _, repair = asked.questions
    assert f"<answer>\n{rubbish}\n</answer>" in repair.text
    assert '- Line 1: "The agent looked at three files." is neither' in repair.text
    assert "look at all of them" not in repair.text, "the messages are not paid for twice"


def test_what_can_be_read_is_kept_and_what_cannot_is_counted(store: Store) -> None:
    notes = ["medium change: Agent looked at src/c0.py", "low finding: src/c1.py is empty"]
    broken = block(*notes).replace("</obs", "I could say more.\n</obs", 1)
    writer, asked = observer(ModelReply(broken, calls=1, model="test/model"))
    found = asyncio.run(keeper(store).observe([user("go"), *rounds(3)], pick, writer, MODE))
    assert (found.remark_count, found.left_out, len(asked.questions)) == (2, 1, 1)


def test_where_it_cannot_be_asked_once_more_nothing_is_kept(store: Store) -> None:
    writer, asked = observer("Quack.", ForedeckError("20 questions were asked within the hour"))
    with pytest.raises(ObservingFailed, match=r'Line 1: "Quack\." is neither'):
        asyncio.run(keeper(store).observe([user("go"), *rounds(3)], pick, writer, MODE))
    assert len(asked.questions) == 2
    assert kept(store) == []


def test_nobody_observes_while_another_does(store: Store) -> None:
    first, second = keeper(store), keeper(store, "two")
    chat = rounds(3)
    first.lease.take("observe", first.lease.look())
    writer, asked = observer(NOTES)
    with pytest.raises(ObservingBusy, match="in progress"):
        asyncio.run(second.observe(chat, pick, writer, MODE))
    assert asked.questions == [], "nothing is spent"


def test_what_somebody_committed_since_the_look_is_found_out(store: Store) -> None:
    late = keeper(store, "two")
    seen = late.lease.look()
    observe(store)
    with pytest.raises(ObservingBusy, match="just observed"):
        late.lease.take("observe", seen)


def test_a_lost_lease_commits_nothing(store: Store) -> None:
    time = Time()
    slow, quick = keeper(store, time=time), keeper(store, "two", time=time)
    chat = rounds(3)

    async def overtaken() -> None:
        time.now += LEASE_MS + 1
        other, _ = observer(NOTES)
        await quick.observe(chat, pick, other, MODE)

    writer, asked = observer(NOTES)
    asked.before = overtaken
    with pytest.raises(ObservingBusy, match="lease was lost"):
        asyncio.run(slow.observe(chat, pick, writer, MODE))
    (found,) = kept(store)
    assert found.document.operation != ""
    assert len(store.history(found.id)) == 1


def test_a_lease_that_is_renewed_holds_longer(store: Store) -> None:
    time = Time()
    one, two = keeper(store, time=time).lease, keeper(store, "two", time=time).lease
    operation = one.take("observe", one.look())
    time.now += LEASE_MS - 1
    one.renew(operation)
    time.now += LEASE_MS - 1
    with pytest.raises(ObservingBusy):
        two.take("observe", two.look())
    time.now += 1
    two.take("observe", two.look())
    with pytest.raises(ObservingBusy):
        one.renew(operation)


def test_a_process_that_ended_and_was_not_waited_for_is_gone() -> None:
    process = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    machine = owner_name().partition("/")[0]
    assert is_gone(f"{machine}/{process}/x")
    os.waitpid(process, 0)
    assert not is_gone(f"elsewhere/{process}/x")
    assert not is_gone(f"{platform.node()}/{process}/x"), "others may be called the same"


def test_where_asking_would_end_a_process_its_lease_has_to_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    owner = owner_name()
    monkeypatch.setattr(os, "kill", lambda process, _signal: asked.append(process))
    monkeypatch.setattr(sys, "platform", "win32")
    assert (is_gone(owner), asked) == (False, [])
    monkeypatch.setattr(sys, "platform", "linux")
    assert (is_gone(owner), asked) == (False, [os.getpid()])


def test_a_live_owner_is_left_alone(store: Store) -> None:
    mine = ObservingLease(store, "s", clock=Time())
    mine.take("observe", mine.look())
    assert not is_gone(mine.owner)
    assert keeper(store).lease.clear_stale() == ""


def test_one_huge_message_is_observed_part_by_part(store: Store) -> None:
    chat = [user("word " * 8000, tokens=10_000), answer("I have read it.", "a"), result("a")]
    writer, asked = observer(block("high request: User asked for words"))
    while asyncio.run(keeper(store).observe(chat, pick, writer, MODE)):
        assert len(asked.questions) < 10
    assert [len(found.document.covers) for found in kept(store)] == [0, 0, 3]
    assert all(question.warm is None for question in asked.questions)


def test_names_that_stand_in_no_message_are_marked(store: Store) -> None:
    observe(store, 3, block("medium change: Agent wrote src/made_up.py and src/c1.py"))
    (found,) = kept(store)
    assert found.text.endswith("src/c1.py\n  (not in the sources: src/made_up.py)")


# Reflecting


def test_a_reflection_stands_for_the_oldest_and_names_what_it_drops(store: Store) -> None:
    chat = noted(store, 9)
    made, systems = reflect(store, chat, block("medium change: Agent looked at src/c1.py"))
    assert len(systems) == 1
    (reflection,) = stored_notes(store, ["s"]).reflections
    observations = kept(store)
    replaced = len(reflection.document.replaces)
    assert 0 < replaced < len(observations)
    assert reflection.document.replaces == [o.id for o in observations[:replaced]]
    assert "src/c2.py" in reflection.document.dropped
    branch = keeper(store).read([m.address for m in chat])
    assert [r.id for r in branch.reflections] == [made.id]
    assert [o.id for o in branch.observations] == [o.id for o in observations[replaced:]]


def test_a_reflection_that_is_too_long_is_asked_for_again_more_strongly(store: Store) -> None:
    chat = noted(store, 9)
    long = block(*[f"medium change: Agent looked at src/c{n}.py, step {n}" for n in range(24)])
    made, systems = reflect(store, chat, long, long, block("low change: Agent looked"))
    assert ["Condense more:" in s for s in systems] == [False, True, False]
    assert len({re.findall("at most .* words", system)[0] for system in systems}) == 1
    assert ["Condense hard:" in s for s in systems] == [False, False, True]
    assert made.compression == 2


def test_then_anything_shorter_is_taken_else_the_old_stays(store: Store) -> None:
    chat = noted(store, 9)
    same = block(*[f"medium change: Agent looked at src/c{n}.py, and {n} more" for n in range(60)])
    with pytest.raises(ObservingFailed, match="stayed as long"):
        reflect(store, chat, same)
    assert stored_notes(store, ["s"]).reflections == []
    shorter = block(*[f"medium change: Agent looked at src/c{n}.py, step {n}" for n in range(22)])
    made, systems = reflect(store, chat, same, shorter, same)
    assert len(systems) == 3
    assert made.compression == 1


def test_a_name_that_nothing_vouched_for_stays_marked(store: Store) -> None:
    for rows, name in ((3, "src/made_up.py"), (6, "src/c4.py")):
        observe(store, rows, block(*[f"low change: Agent wrote {name}, {n}" for n in range(20)]))
    chat = [user("look at all of them"), *rounds(6)]
    notes = block("medium change: Agent wrote src/made_up.py and src/c4.py")
    made, _ = reflect(store, chat, notes, age_ms=DAY_MS * 2)
    assert made.remarks[0].unfounded == ["src/made_up.py"]


def test_what_was_condensed_is_condensed_again_with_what_came_after(store: Store) -> None:
    chat = noted(store, 9)
    first, _ = reflect(store, chat, block("high decision: User wants src/c1.py"))
    second, _ = reflect(
        store, chat, block("medium change: Agent looked at src/c2.py"), age_ms=DAY_MS * 2
    )
    assert (first.level, first.generation, second.generation) == ("reflection", 1, 2)
    assert (second.level, second.replaces[0]) == ("summary", first.id)
    assert second.observations[: len(first.observations)] == first.observations
    branch = keeper(store).read([m.address for m in chat])
    assert [r.id for r in branch.reflections] == [second.id]
    assert branch.observations == ()


# Without a model


def test_the_same_machinery_runs_on_a_summary_that_no_model_writes(store: Store) -> None:
    summary = (
        "[foredeck] Turn 1\nAsked:\n- turn 1: look at all\nFiles:\n- @3 src/c0.py: read\n"
        "Errors:\n- read src/x.py (turn 1): gone"
    )
    free = ModelFreeObserver(lambda _chunk: summary, count, CLOCK)
    chat = [user("look at all of them"), *rounds(3)]
    document = asyncio.run(keeper(store).observe(chat, pick, free, MODE))
    assert document is not None
    (found,) = kept(store)
    assert [(r.priority, r.category) for r in found.document.remarks] == [
        ("high", "request"),
        ("medium", "change"),
        ("high", "error"),
    ]
    assert (found.document.observed_by, found.document.priority) == ("foredeck", "high")


def test_without_a_model_the_least_and_oldest_goes_first(store: Store) -> None:
    chat = noted(store, 9)
    free = ModelFreeObserver(lambda _chunk: "", count, CLOCK)
    made = asyncio.run(keeper(store).reflect(chat, free, asked=True))
    assert made.tokens <= made.input_tokens // 2
    assert made.remarks[-1].content.endswith("step 3")


def test_a_fork_uses_what_its_parent_noted_before_and_nothing_later(store: Store) -> None:
    observe(store, 3)
    observe(store, 6)
    fork = keeper(store, session="fork")
    fork.ancestors = ("s",)
    chat = [user("look at all of them"), *rounds(3), user("now otherwise"), answer("yes")]
    notes = fork.read([m.address for m in chat])
    assert [p.observation.document.session for p in notes.placed] == ["s"]
    assert notes.position.messages == 7
    stranger = keeper(store, session="other")
    assert stranger.read([m.address for m in chat]).placed == ()


def test_cancelled_at_shutdown_it_keeps_nothing(store: Store) -> None:
    async def cancelled() -> None:
        asked = asyncio.Event()

        async def ask(_question: object) -> ModelReply:
            asked.set()
            await asyncio.sleep(3600)
            return ModelReply(NOTES)

        writer, _ = observer()
        object.__setattr__(writer, "ask", ask)
        task = asyncio.create_task(keeper(store).observe(rounds(3), pick, writer, MODE))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert kept(store) == []
    assert observe(store) is not None
