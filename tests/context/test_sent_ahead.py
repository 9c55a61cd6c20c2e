"""A history sent ahead of the first call: the prompts are those of a call that brings it itself,
of a session that is new here and of one that is resumed."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from foredeck.config import Config
from foredeck.context.messages.shape import Message
from foredeck.engine.engine import Engine
from foredeck.errors import OutOfSync
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck_bench.work_session import Step, WorkSession, work_host

DAY_MS = 86_400_000


def said(text: str, time_ms: int) -> Message:
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": time_ms}


def history(work: WorkSession, calls: int) -> list[Message]:
    return [message for step in work.steps(calls) for message in step.messages]


def first_prompt(
    home: Path, work: WorkSession, before: list[Message], *, ahead: bool, changed: int | None = None
) -> tuple[list[Message], SimulatedHost]:
    """What goes out at the first call, a day later; and the host, to go on with."""
    host = work_host(work.id, before)
    with closing(Engine(Config(home=home))) as engine:
        engine.open_session(host.opening(str(work.folder), "resume"))
        if ahead:
            held = engine.take_history(host.history())
            assert 0 < held["messages"] <= len(before)
            host.hold(held)
        if changed is not None:
            host.messages[changed] = said("Something else.", work.time_ms)
        host.add(said("Go on.", work.time_ms + DAY_MS))
        request = host.request(work.time_ms + DAY_MS)
        assert (request.keep > 0) is ahead
        host.accept(engine.assemble(request))
        first = host.prompt()
        for step in _more(work):
            host.add(*step.messages)
            host.accept(engine.assemble(host.request(step.time_ms)))
        return [*first, *host.prompt()], host


def _more(work: WorkSession) -> list[Step]:
    later = WorkSession(work.folder / "later", id=work.id, seed=11)
    later.time_ms = work.time_ms + DAY_MS
    return list(later.steps(2))[1:]


def test_a_history_from_before_foredeck_gives_the_same_prompts(tmp_path: Path) -> None:
    work = WorkSession(tmp_path / "work")
    before = history(work, 60)
    plain, _ = first_prompt(tmp_path / "plain", work, before, ahead=False)
    ahead, host = first_prompt(tmp_path / "ahead", work, before, ahead=True)
    assert ahead == plain
    assert " folded: " in str(ahead)
    # And again, by another engine, now that there are calls of ours.
    shutil.copytree(tmp_path / "ahead", tmp_path / "again")
    going_on = list(host.messages)
    plain, _ = first_prompt(tmp_path / "ahead", work, going_on, ahead=False)
    ahead, _ = first_prompt(tmp_path / "again", work, going_on, ahead=True)
    assert ahead == plain


def test_a_list_that_has_changed_since_goes_on_from_what_is_the_same(tmp_path: Path) -> None:
    work = WorkSession(tmp_path / "work")
    before = history(work, 30)
    index = next(i for i in range(20, len(before)) if before[i]["role"] == "user")
    ahead, _ = first_prompt(tmp_path / "ahead", work, before, ahead=True, changed=index)
    assert "Something else." in str(ahead)


def test_more_than_was_sent_is_not_taken_on_trust(tmp_path: Path) -> None:
    work = WorkSession(tmp_path / "work")
    host = work_host(work.id, history(work, 5))
    with closing(Engine(Config(home=tmp_path / "home"))) as engine:
        engine.open_session(host.opening(str(work.folder), "resume"))
        held = engine.take_history(host.history())
        host.hold({"messages": held["messages"] + 1})
        with pytest.raises(OutOfSync):
            engine.assemble(host.request(work.time_ms))
        host.replace_engine()
        assert engine.assemble(host.request(work.time_ms))["call"] == 2
