"""What the reader makes of Codex's rollouts."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from written_histories import START

from foredeck.store.store import Store
from foredeck_agents.histories.codex import read_codex
from foredeck_agents.histories.ingesting import ingest_files
from foredeck_agents.histories.lines import Lines
from foredeck_agents.histories.recordings import history_files
from foredeck_agents.histories.records import Exchange, HistorySession, exchanges

ROLLOUT = "0199c0de-0000-7000-8000-000000000001"


def item(kind: str, line: str = "response_item", **payload: Any) -> dict[str, Any]:
    return {"timestamp": START.format(7), "type": line, "payload": {"type": kind} | payload}


def meta(**payload: Any) -> dict[str, Any]:
    given = {"id": ROLLOUT, "cwd": "/repo", "cli_version": "0.139.0", "model_provider": "openai"}
    return {"timestamp": START.format(0), "type": "session_meta", "payload": {**given, **payload}}


def said(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


def output(call: str, text: Any) -> dict[str, Any]:
    return item("function_call_output", call_id=call, output=text)


LINES = [
    meta(),
    said("developer", "<permissions>"),
    said("user", "<environment_context>\n  <cwd>/repo</cwd>\n</environment_context>"),
    said("user", "Review it."),
    {"type": "turn_context", "payload": {"model": "gpt-x"}},
    item("user_message", "event_msg", message="Review it."),
    item("reasoning", summary=[{"type": "summary_text", "text": "Look first."}]),
    item("reasoning", summary=[], encrypted_content="sealed"),
    item("function_call", name="exec_command", call_id="c1", arguments='{"cmd": "git diff"}'),
    item("custom_tool_call", name="apply_patch", call_id="c2", input="*** Begin Patch"),
    output("c1", "Wall time: 1 s\nProcess exited with code 2\nOutput:\nfatal\n"),
    item(
        "custom_tool_call_output",
        call_id="c2",
        output=json.dumps({"output": "Success.", "metadata": {"exit_code": 0}}),
    ),
    item("local_shell_call", call_id="c3", action={"type": "exec", "command": ["ls"]}),
    output("c3", {"content": "gone", "success": False}),
    said("assistant", "It is fine."),
    item("", "compacted", message="What was said: all."),
]


def read(lines: list[dict[str, Any]]) -> tuple[list[HistorySession], list[Exchange], Lines]:
    source = Lines(io.BytesIO("".join(json.dumps(line) + "\n" for line in lines).encode()))
    found = list(exchanges(read_codex(source)))
    sessions = [one for one in found if isinstance(one, HistorySession)]
    return sessions, [one for one in found if isinstance(one, Exchange)], source


def test_items_between_results_are_one_answer() -> None:
    sessions, found, lines = read(LINES)
    assert sessions == [HistorySession(ROLLOUT, "codex", "/repo")]
    messages: list[Any] = [exchange.message() for exchange in found]
    assert [[b["type"] for b in m["content"]] for m in messages[:3]] == [
        ["thinking", "toolCall", "toolCall"],
        ["toolCall"],
        ["text"],
    ]
    assert messages[0]["content"][1]["arguments"] == {"cmd": "git diff"}
    assert messages[0]["content"][2]["arguments"] == {"input": "*** Begin Patch"}
    assert messages[1]["content"][0]["name"] == "local_shell"
    assert {m["model"] for m in messages[:3]} == {"gpt-x"}
    assert lines.tally.other == {"event_msg user_message": 1, "response_item reasoning": 1}


def test_results_say_whether_the_tool_failed() -> None:
    _, found, _ = read(LINES)
    results = [record.message for exchange in found for record in exchange.results]
    assert [(r["toolName"], r["isError"]) for r in results] == [
        ("exec_command", True),
        ("apply_patch", False),
        ("local_shell", True),
    ]
    assert [r["content"][0]["text"] for r in results[1:]] == ["Success.", "gone"]


def test_what_the_user_did_not_type_is_told_apart() -> None:
    _, found, _ = read(LINES)
    roles = [record.message.get("customType", record.role) for record in found[0].before]
    assert roles == ["codex:developer", "codex:context", "user"]
    assert found[-1].before[0].message["summary"] == "What was said: all."


def test_what_the_user_typed_behind_what_codex_puts_there_is_theirs() -> None:
    agents = "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>"
    texts = (agents, f"{agents}\nReview it.", "<turn_aborted>\nBy you.\n</turn_aborted>")
    _, found, _ = read([meta(), *(said("user", text) for text in texts)])
    assert [record.role for record in found[0].before] == ["custom", "user", "custom"]
    assert found[0].before[1].message["content"] == [{"type": "text", "text": texts[1]}]


@pytest.mark.parametrize(
    ("fields", "parent", "started_by"),
    [
        ({"parent_thread_id": "p1", "source": {"subagent": "review"}}, None, "p1"),
        ({"source": {"subagent": {"thread_spawn": {"parent_thread_id": "p2"}}}}, None, "p2"),
        ({"forked_from_id": "p3", "source": "cli"}, "p3", None),
    ],
)
def test_subagents_and_forks_keep_their_parent(
    fields: dict[str, Any], parent: str | None, started_by: str | None
) -> None:
    sessions, _, _ = read([meta(**fields), meta(id="p3"), said("user", "Go on.")])
    assert sessions == [HistorySession(ROLLOUT, "codex", "/repo", parent, started_by)]


def test_odd_lines_are_counted() -> None:
    _, found, lines = read(
        [
            said("user", "too early"),
            meta(),
            {"type": "response_item", "payload": None},
            item("message", role="assistant", content=[None, 5]),
            item("function_call", call_id=None, arguments="not json"),
            output("c9", [{"type": "input_image", "image_url": "data:image/png;base64,QQ=="}]),
        ]
    )
    assert lines.tally.unreadable == {"without a payload": 1}
    assert lines.tally.places == {"without a payload": [3]}
    (exchange,) = found
    assert exchange.before[0].message["content"] == [{"type": "text", "text": "too early"}]
    message: Any = exchange.message()
    assert message["content"][2]["arguments"] == {"input": "not json"}
    assert exchange.results[0].message["content"] == [
        {"type": "image", "data": "QQ==", "mimeType": "image/png"}
    ]


HEADER = {"id": ROLLOUT, "timestamp": START.format(0), "instructions": None, "git": {}}
ITEMS = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List."}]},
    {"type": "function_call", "name": "shell", "call_id": "c1", "arguments": '{"command": ["ls"]}'},
    {"type": "function_call_output", "call_id": "c1", "output": '{"output": "a.py\\n"}'},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One."}]},
]
STATE = {"record_type": "state"}


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("\n".join(map(json.dumps, [HEADER, STATE, *ITEMS])), ROLLOUT),
        ("\n".join(map(json.dumps, ITEMS)), "0199c0de-0000-7000-8000-00000000000f"),
        (
            "\n".join(json.dumps({"type": "response_item", "payload": one}) for one in ITEMS),
            "0199c0de-0000-7000-8000-00000000000f",
        ),
        (json.dumps({"session": HEADER, "items": ITEMS}), ROLLOUT),
        (json.dumps({"session": HEADER, "items": ITEMS}, indent=2), ROLLOUT),
        (json.dumps([HEADER, STATE, *ITEMS]), ROLLOUT),
        (json.dumps([HEADER, STATE, *ITEMS], indent=0), ROLLOUT),
        ("\n".join(json.dumps(line, indent=4) for line in [HEADER, *ITEMS]), ROLLOUT),
    ],
    ids=["bare", "headless", "today, headless", "whole", "pretty", "list", "lines", "spread"],
)
def test_rollouts_in_earlier_forms_are_read(
    tmp_path: Path, store: Store, text: str, id: str
) -> None:
    name = "rollout-2025-06-01T10-00-00-0199c0de-0000-7000-8000-00000000000f.json"
    (tmp_path / name).write_text(text)
    report = ingest_files(store, history_files([tmp_path]))
    assert (report.new, report.messages, report.tool_calls) == (1, 3, 1)
    assert (report.unreadable, report.damaged) == ({}, {})
    assert [head.id for head in store.query("session")] == [f"session:{id}"]
    (call,) = store.query("toolcall")
    assert call.fields["tool"] == "shell"
    again = ingest_files(store, history_files([tmp_path]))
    assert (again.new, again.unchanged) == (0, 1)


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>\nCurrent working directory: /repo/a b\nApproval policy: never\n",
        "<environment_context>\n  <cwd>/repo/a b</cwd>\n</environment_context>",
    ],
)
def test_the_folder_of_an_early_rollout_is_in_what_follows(text: str) -> None:
    told = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    (session,), found, _ = read([HEADER, STATE, told, *ITEMS])
    assert session == HistorySession(ROLLOUT, "codex", "/repo/a b")
    assert [record.role for record in found[0].before] == ["custom", "user"]
    (session,), found, _ = read([HEADER, STATE, *ITEMS])
    assert (session.cwd, len(found)) == ("", 2)


CODEX = Path(__file__).parents[3] / "shared" / "history-codex"


@pytest.mark.skipif(not CODEX.is_dir(), reason="no rollouts in ../shared/history-codex")
def test_recorded_rollouts_are_read_without_a_loss(store: Store) -> None:
    files = sorted(CODEX.glob("*.jsonl"))
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    kinds = [line["payload"].get("type") for line in lines if line["type"] == "response_item"]
    report = ingest_files(store, files)
    assert (report.new, report.skipped, report.unreadable) == (len(files), {}, {})
    assert report.tool_calls == kinds.count("function_call_output")
    for head in store.query("session"):
        assert head.fields["started_by"]


def test_an_answer_has_the_tokens_that_are_counted_once_its_tools_have_run() -> None:
    used = {"input_tokens": 900, "cached_input_tokens": 400, "output_tokens": 30}
    counted = item("token_count", "event_msg", info={"last_token_usage": used})
    lines = [
        meta(),
        counted,
        said("user", "Look."),
        item("function_call", name="exec_command", call_id="c1", arguments="{}"),
        output("c1", "done"),
        counted,
        item("token_count", "event_msg", info=None),
        said("assistant", "It is fine."),
    ]
    raw = "".join(json.dumps(line) + "\n" for line in lines).encode()
    found = [e for e in exchanges(read_codex(Lines(io.BytesIO(raw)))) if isinstance(e, Exchange)]
    answers = [each.message() or {} for each in found]
    usage = {"input": 500, "cacheRead": 400, "cacheWrite": 0, "output": 30}
    assert [answer.get("usage") for answer in answers] == [usage, None]
    assert [block["type"] for block in answers[0]["content"]] == ["toolCall"]
