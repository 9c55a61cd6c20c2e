"""The measurements work; what they measure is asserted nowhere, since machines are busy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands import Foredeck
from foredeck.context.messages.shape import find_faults
from foredeck_agents.histories.pi import load_transcript
from foredeck_bench import long_sessions, measure_command
from foredeck_bench.engine_process import EngineFailed, EngineProcess, run_step
from foredeck_bench.figures import resident_mb
from foredeck_bench.long_sessions import grow, history_figures, large_figures
from foredeck_bench.work_session import MAX_RESULT, WorkSession, transcript_line, work_host


def messages_of(folder: Path, calls: int) -> list[dict[str, Any]]:
    steps = WorkSession(folder).steps(calls)
    return [message for step in steps for message in step.messages]


def test_the_session_is_deterministic_and_one_that_a_provider_takes(tmp_path: Path) -> None:
    messages = messages_of(tmp_path / "1", 60)
    assert messages == messages_of(tmp_path / "2", 60)
    assert find_faults(messages) == []
    tools = {message["toolName"] for message in messages if message["role"] == "toolResult"}
    assert tools == {"bash", "read", "edit"}
    assert max(len(json.dumps(message)) for message in messages) < 2 * MAX_RESULT
    session = WorkSession(tmp_path / "3")
    list(session.steps(60))
    assert session.transcript_bytes > sum(len(json.dumps(message)) for message in messages) * 0.9


def test_its_transcript_is_one_that_replay_reads(tmp_path: Path) -> None:
    messages = messages_of(tmp_path / "work", 5)
    lines = [b'{"type": "session", "id": "s", "version": 3}\n']
    for number, message in enumerate(messages, start=1):
        lines.append(transcript_line(message, number))
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(lines))
    assert [recorded.message for recorded in load_transcript(path).messages] == messages


def test_growing_tells_times_and_sizes_for_each_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_sessions, "RESUMES", 2)
    done: list[int] = []
    growth = grow(tmp_path, done.append, (6, 20), resumed_at=12)
    assert sum(done) == 20
    assert (
        len(growth.assemble)
        == len(growth.commit)
        == len(growth.observe)
        == len(growth.policy)
        == 20
    )
    assert all(commit > 0 for commit in growth.commit)
    assert len(growth.resume) == 2
    assert list(growth.store_bytes) == [6, 12, 20]
    assert growth.transcript_bytes[6] < growth.transcript_bytes[20]
    assert len(growth.last(growth.assemble, 6)) == 3
    assert {path.name for path in tmp_path.iterdir()} == {"home", "work"}


def test_a_real_engine_answers_step_by_step(tmp_path: Path) -> None:
    work = WorkSession(tmp_path / "work")
    host = work_host(work.id)
    with EngineProcess(tmp_path / "home", work.folder) as engine:
        engine.initialize()
        engine.open(work.id)
        for step in work.steps(4):
            assert run_step(engine, host, step) > 0
        assert engine.ping_seconds(step.messages) > 0
        assert (resident_mb(engine.pid) or 1) > 0
        with pytest.raises(EngineFailed, match="is not open"):
            engine.ask("command", {"session": "another", "name": "view"})
    assert (tmp_path / "home" / "foredeck.db").is_file()


def test_the_command_prints_figures_and_the_machine(
    foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure_command, "STARTS", 1)
    value = foredeck.json("bench", "start")
    names = [figure["name"] for figure in value["figures"]]
    # Not every system tells the processor time of another process.
    assert names in (["start"], ["start", "start_busy", "open_busy"])
    assert value["figures"][0]["goal"] == 450
    assert value["machine"]["cores"] >= 1
    assert "engine start to first answer" in foredeck("bench", "start")
    assert "there is no 'strat'; there are start, " in foredeck("bench", "strat", code=2)


def test_a_history_is_taken_in_ahead_and_large_ones_are_opened(tmp_path: Path) -> None:
    figures = list(history_figures(tmp_path / "history", lambda _note: None, 60, 1))
    assert [figure.name for figure in figures] == ["history", "history_call", "history_alone"]
    assert figures[0].more["messages"] >= 60
    figures = list(large_figures(tmp_path / "large", lambda _note: None, 300_000, 20))
    names = ["large_file", "large_file_memory", "many_sessions", "many_sessions_memory"]
    assert [figure.name for figure in figures] == names
    assert not (tmp_path / "large" / "session.jsonl").exists()
