"""Results in histories find their calls, whatever their ids are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_codex import item, meta
from written_histories import SESSION, ClaudeCode, write_lines

from foredeck.model.documents import ToolcallDocument
from foredeck.store.store import Store
from foredeck_agents.histories.ingesting import ingest_files
from foredeck_agents.histories.recordings import load_recording

MISSING = object()
IDS: dict[str, list[tuple[Any, Any]]] = {
    "good": [("a", "a"), ("b", "b")],
    "swapped": [("a", "b"), ("b", "a")],
    "alike": [("x", "x"), ("x", "x")],
    "empty": [("", ""), ("", "")],
    "null": [(None, None), (None, None)],
    "missing": [(MISSING, MISSING), (MISSING, MISSING)],
    "numbers": [(1, 1), (2, 2)],
    "lost": [("a", None), ("b", None)],
}


def having(member: str, id: Any, /, **rest: Any) -> dict[str, Any]:
    return rest if id is MISSING else {**rest, member: id}


def claude_code(ids: list[tuple[Any, Any]]) -> list[Any]:
    history = ClaudeCode()
    history.user("go")
    for number, (id, _) in enumerate(ids, 1):
        use = having("id", id, type="tool_use", name="Bash", input={"command": f"{number}"})
        history.answer("m1", use)
    for number, (_, id) in enumerate(ids, 1):
        block = having("tool_use_id", id, type="tool_result", content=f"out {number}")
        history.line("user", message={"role": "user", "content": [block]})
    return history.lines


def codex(ids: list[tuple[Any, Any]]) -> list[Any]:
    lines = [meta()]
    for number, (id, _) in enumerate(ids, 1):
        arguments = json.dumps({"cmd": f"{number}"})
        lines.append(item("function_call", name="exec_command", arguments=arguments))
        lines[-1]["payload"] |= having("call_id", id)
    for number, (_, id) in enumerate(ids, 1):
        lines.append(item("function_call_output", output=f"out {number}"))
        lines[-1]["payload"] |= having("call_id", id)
    return lines


def pi(ids: list[tuple[Any, Any]]) -> list[Any]:
    calls = [
        having("id", id, type="toolCall", name="bash", arguments={"command": f"{number}"})
        for number, (id, _) in enumerate(ids, 1)
    ]
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": calls, "stopReason": "toolUse"},
    ]
    for number, (_, id) in enumerate(ids, 1):
        content = [{"type": "text", "text": f"out {number}"}]
        result = having("toolCallId", id, role="toolResult", toolName="bash", content=content)
        messages.append(result)
    entries = [{"type": "message", "id": f"e{n}", "message": m} for n, m in enumerate(messages)]
    return [{"type": "session", "id": SESSION, "cwd": "/repo"}, *entries]


@pytest.mark.parametrize("make", [claude_code, codex, pi])
@pytest.mark.parametrize("ids", sorted(IDS))
def test_each_result_is_stored_with_its_call(
    tmp_path: Path, store: Store, make: Any, ids: str
) -> None:
    lines = make(IDS[ids])
    for read in (lines[:-1], lines):
        ingest_files(store, [write_lines(tmp_path / "a.jsonl", read)])
    found = [store.get(head.id, ToolcallDocument) for head in store.query("toolcall")]
    made = {(next(iter(tool.args.values())), tool.content) for tool in found if tool}
    texts = ["out 2", "out 1"] if ids == "swapped" else ["out 1", "out 2"]
    assert made == {*zip(("1", "2"), texts, strict=True)}
    assert len(found) == 2
    messages = [each.message for each in load_recording(tmp_path / "a.jsonl").messages]
    assert [message["role"] for message in messages[-3:]] == ["assistant", *["toolResult"] * 2]


def test_the_output_of_a_local_shell_names_the_item_of_its_call(
    tmp_path: Path, store: Store
) -> None:
    lines = [meta()]
    for number in (1, 2):
        names = {"id": f"lsh_{number}", "call_id": f"c{number}"}
        lines.append(item("local_shell_call", action={"command": [f"{number}"]}, **names))
    for number in (2, 1):
        lines.append(item("local_shell_call_output", id=f"lsh_{number}", output=f"out {number}"))
    ingest_files(store, [write_lines(tmp_path / "a.jsonl", lines)])
    found = [store.get(head.id, ToolcallDocument) for head in store.query("toolcall")]
    made = {(tool.id, str(tool.args["command"]), tool.content) for tool in found if tool}
    assert made == {("c1", "['1']", "out 1"), ("c2", "['2']", "out 2")}


@pytest.mark.parametrize("odd", [None, ["a"], {"a": 1}, 7])
def test_names_and_ids_that_are_no_texts_end_no_reading(
    tmp_path: Path, store: Store, odd: Any
) -> None:
    lines = pi(IDS["good"])
    lines[2]["message"]["content"][0]["name"] = odd
    lines[2]["message"]["stopReason"] = odd
    lines[3]["message"]["toolName"] = odd
    lines[3] |= {"id": odd, "parentId": odd}
    file = write_lines(tmp_path / "a.jsonl", lines)
    report = ingest_files(None, [file], dry=True)
    assert (report.skipped, report.tool_calls) == ({}, 2)
    assert ingest_files(store, [file]).skipped == {}
    assert len(store.query("toolcall")) == 2
    assert load_recording(file, branches=True).tool_calls >= 1
