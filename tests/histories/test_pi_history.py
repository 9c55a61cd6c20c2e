"""Pi's own session files: read in, left alone where foredeck was there, resumed afterwards."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from written_histories import START_MS, write_lines

from commands import Foredeck
from foredeck.context.state.stored_chat import chat_fields, render_chat
from foredeck.store.store import Store, open_sqlite
from foredeck_agents.histories.ingesting import ingest_files
from foredeck_agents.histories.pi import load_transcript
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay.replayed_session import ReplayedSession
from foredeck_lab.replay_command import replay

PI_SESSION = "0199aaaa-0000-7000-8000-00000000000a"


def entry(number: int, message: dict[str, Any], parent: int | None = None) -> dict[str, Any]:
    before = number - 1 if parent is None else parent
    return {
        "type": "message",
        "id": f"e{number}",
        "parentId": f"e{before}" if before else None,
        "message": {**message, "timestamp": START_MS + number * 1000},
    }


def answer(text: str, *calls: str) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
    blocks += [
        {"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": f"echo {id}"}}
        for id in calls
    ]
    return {"role": "assistant", "content": blocks, "stopReason": "toolUse" if calls else "stop"}


def result(id: str) -> dict[str, Any]:
    content = [{"type": "text", "text": f"{id}\n" * 100}]
    return {"role": "toolResult", "toolCallId": id, "toolName": "bash", "content": content}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


HEADER = {"type": "session", "version": 3, "id": PI_SESSION, "cwd": "/repo"}
LINES = [
    HEADER,
    {"type": "model_change", "id": "m", "parentId": None, "provider": "p", "modelId": "x"},
    entry(1, user("Run one and two.")),
    entry(2, answer("I do.", "one", "two")),
    entry(3, result("one")),
    entry(4, result("two")),
    entry(5, answer("Both ran.")),
    entry(6, user("Something else."), parent=1),
    entry(7, answer("Another branch.")),
    entry(8, user("And back."), parent=5),
    entry(9, answer("Last.", "three")),
    entry(10, result("three")),
    entry(11, answer("Done.")),
]


def test_all_branches_are_read(tmp_path: Path, store: Store) -> None:
    summary = {"type": "compaction", "id": "c", "parentId": "e11", "summary": "Ran three."}
    report = ingest_files(store, [write_lines(tmp_path / "a.jsonl", [*LINES, summary])])
    assert (report.files, report.messages, report.tool_calls) == ({"pi": 1}, 9, 3)
    assert report.other == {"model_change": 1}
    chat = render_chat(store, PI_SESSION, 6)
    assert "Another branch." in chat
    assert chat.endswith("--- compactionSummary\nRan three.\n")


def test_messages_of_an_old_pi_stay_as_they_are(tmp_path: Path, store: Store) -> None:
    """An answer whose content is a string, and which names no reason to stop."""
    old = {"role": "assistant", "content": "As it was."}
    file = write_lines(tmp_path / "a.jsonl", [HEADER, entry(1, user("Well?")), entry(2, old)])
    ingest_files(store, [file])
    (turn,) = chat_fields(store, PI_SESSION, 1)["turns"]
    assert turn["assistant"] == {**old, "timestamp": START_MS + 2000}


def test_a_fork_names_its_parent(tmp_path: Path, store: Store) -> None:
    fork = [
        {
            **HEADER,
            "id": "fork",
            "parentSession": f"/x/2026-02-03T10-00-00-000Z_{PI_SESSION}.jsonl",
        },
        *LINES[1:6],
        entry(12, answer("In the fork."), parent=4),
    ]
    files = [write_lines(tmp_path / "a.jsonl", LINES), write_lines(tmp_path / "b.jsonl", fork)]
    assert ingest_files(store, files).new == 2
    assert store.head("session:fork").fields["parent_session"] == PI_SESSION
    assert store.head("turn:fork:1").fields["toolcall_ids"] == ["one", "two"]


def test_what_foredeck_recorded_is_left_alone(tmp_path: Path) -> None:
    file = write_lines(tmp_path / f"{PI_SESSION}.jsonl", LINES)
    replay([file], ReplayOptions(), keep=tmp_path / "kept")
    recorded = open_sqlite(tmp_path / "kept" / PI_SESSION / "foredeck.db")
    before = recorded.latest()
    report = ingest_files(recorded, [file])
    assert (report.recorded, report.new, report.messages) == (1, 0, 0)
    assert recorded.latest() == before
    recorded.close()


def play(home: Path, file: Path) -> str:
    """Every call of the recorded session on the store in `home`: the prompts, without the numbers
    of handles, which follow the order in which a session meets its objects."""
    transcript = load_transcript(file)
    session = ReplayedSession(home, transcript, ReplayOptions())
    prompts = [session.call(call)[0] for call in transcript.calls]
    session.close()
    return re.sub(r"@\d+", "@N", json.dumps(prompts))


def test_a_session_that_was_read_in_goes_on_with_foredeck(tmp_path: Path, store: Store) -> None:
    """Its turns and tool calls are known again, and none is stored twice."""
    begun = write_lines(tmp_path / "begun.jsonl", LINES)
    whole = [*LINES, entry(12, user("Go on.")), entry(13, answer("Yes.", "four"))]
    whole += [entry(14, result("four")), entry(15, answer("All done."))]
    file = write_lines(tmp_path / "whole.jsonl", whole)
    ingest_files(store, [begun])
    assert play(tmp_path / "state", file) == play(tmp_path / "fresh", file)
    turns = store.query("turn", {"session": PI_SESSION})
    answers = [head.fields["assistant"] for head in turns]
    assert len(answers) == len(set(answers)) == 6  # the last one was never in a list
    calls = store.query("toolcall", {"chat_ref": f"chat:{PI_SESSION}"})
    assert {head.id for head in calls} == {"one", "two", "three", "four"}
    report = ingest_files(store, [file])
    assert (report.recorded, report.messages) == (1, 0)


def test_a_session_that_was_forgotten_is_not_read_again(tmp_path: Path, foredeck: Foredeck) -> None:
    file = write_lines(tmp_path / "a.jsonl", LINES)
    home = ["--home", str(tmp_path / "state")]
    foredeck("ingest", file, *home)
    foredeck("forget", PI_SESSION, "--yes", *home)
    report = foredeck.json("ingest", file, *home)
    assert (report["forgotten"], report["new"]) == (1, 0)
