"""Recorded sessions of other agents as ones of Pi."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from written_histories import ClaudeCode, claude_code_session, said, thought, use, write_lines

from foredeck_agents.histories.recordings import find_recordings, load_recording, stem_of
from foredeck_agents.histories.records import TranscriptError
from foredeck_agents.histories.tools import in_pis_tools
from foredeck_bench.judging.evidence import needs_of
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay_command import replay


def calls_of(message: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(b["name"], b["arguments"]) for b in message["content"] if b["type"] == "toolCall"]


def test_a_session_of_claude_code_is_one_of_pi(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "one.jsonl", claude_code_session().lines)
    transcript = load_recording(path)
    assert [recorded.message["role"] for recorded in transcript.messages] == [
        *("user", "assistant", "toolResult", "toolResult"),
        *("user", "assistant", "toolResult", "assistant"),
    ]
    assert [call.seen for call in transcript.calls] == [1, 5, 7]
    assert {call.name for call in transcript.calls} == {"anthropic/claude-x"}
    first, edit = transcript.messages[1].message, transcript.messages[5].message
    assert calls_of(first) == [
        ("bash", {"command": "wc -l src/a.py"}),
        ("read", {"path": "/repo/src/a.py"}),
    ]
    assert calls_of(edit) == [
        ("edit", {"path": "/repo/src/a.py", "oldText": "two", "newText": "2"})
    ]
    assert first["content"][0]["thinkingSignature"]
    assert (first["stopReason"], edit["responseId"]) == ("toolUse", "msg_2")
    assert edit["usage"] == {"input": 5, "cacheRead": 900, "output": 40}
    read = transcript.messages[3].message
    assert (read["toolName"], read["content"][0]["text"]) == ("read", "one\ntwo\nthree")
    assert needs_of(transcript)[1].edits == [("two", 4)]


def test_packed_sessions_are_replayed_beside_those_of_pi(tmp_path: Path) -> None:
    lines = "".join(json.dumps(line) + "\n" for line in claude_code_session().lines)
    path = tmp_path / "one.jsonl.gz"
    path.write_bytes(gzip.compress(lines.encode()))
    assert find_recordings([tmp_path]) == [path]
    result = replay([path], ReplayOptions(prompts=tmp_path / "prompts"))
    assert (result["sessions"][0]["error"], result["total"]["calls"]) == (None, 3)
    assert result["total"]["invalid_prompts"] == 0
    assert len(list((tmp_path / "prompts" / stem_of(path)).iterdir())) == 3


def test_a_rollout_of_codex_is_one_of_pi(tmp_path: Path) -> None:
    arguments = json.dumps({"cmd": "ls", "workdir": "/repo"})
    items: list[dict[str, Any]] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List."}]},
        {"type": "function_call", "name": "exec_command", "call_id": "c1", "arguments": arguments},
        {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
    ]
    meta = {"type": "session_meta", "payload": {"id": "r1", "cwd": "/repo"}}
    lines = [meta, *({"type": "response_item", "payload": item} for item in items)]
    transcript = load_recording(write_lines(tmp_path / "rollout.jsonl", lines))
    assert calls_of(transcript.messages[1].message) == [
        ("bash", {"command": "ls", "workdir": "/repo"})
    ]
    assert transcript.messages[2].message["toolName"] == "bash"


@pytest.mark.parametrize(
    ("name", "given", "pis"),
    [
        ("shell", {"command": ["bash", "-lc", "ls"]}, ("bash", {"command": "ls"})),
        ("shell", {"command": ["ls", "-l"]}, ("bash", {"command": "ls -l"})),
        (
            "MultiEdit",
            {"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}, 7]},
            ("edit", {"path": "a", "edits": [{"oldText": "x", "newText": "y"}, 7]}),
        ),
        ("Glob", {"pattern": "*.py"}, ("find", {"pattern": "*.py"})),
        ("Task", {"prompt": "Look."}, ("Task", {"prompt": "Look."})),
    ],
)
def test_tools_have_the_names_and_arguments_of_pis(
    name: str, given: dict[str, Any], pis: tuple[str, dict[str, Any]]
) -> None:
    call = {"type": "toolCall", "id": "c", "name": name, "arguments": given}
    assert calls_of(in_pis_tools({"role": "assistant", "content": [call]})) == [pis]


def compacted_session() -> ClaudeCode:
    history = claude_code_session()
    history.user("This session goes on from an earlier one.", isCompactSummary=True)
    history.user("Go on.")
    history.answer("msg_4", thought("On."), use("toolu_d", "Bash", command="make"))
    history.result("toolu_d", "done")
    history.answer("msg_5", said("Done."), stop_reason="end_turn")
    history.answer("msg_6", said("No response requested."), model="<synthetic>")
    return history


def test_a_compaction_is_what_the_agent_did_and_its_own_words_are_no_call(tmp_path: Path) -> None:
    transcript = load_recording(write_lines(tmp_path / "one.jsonl", compacted_session().lines))
    (compaction,) = transcript.compactions
    assert (compaction.seen, compaction.kept_from) == (8, 8)
    assert len(transcript.calls) == 5
    assert len(transcript.messages) == 13


def test_of_a_file_with_subagents_the_session_itself_is_taken(tmp_path: Path) -> None:
    history = claude_code_session()
    agent = ClaudeCode(isSidechain=True, agentId="a1")
    agent.user("Look around.")
    agent.answer("msg_s", said("Looked."))
    path = write_lines(tmp_path / "one.jsonl", [*history.lines, *agent.lines])
    assert len(load_recording(path).calls) == 3


def test_a_history_without_messages_is_no_session(tmp_path: Path) -> None:
    line = {"type": "user", "sessionId": "../x", "uuid": "u", "message": {"content": "Hi."}}
    with pytest.raises(TranscriptError, match="holds no session"):
        load_recording(write_lines(tmp_path / "none.jsonl", [line]))


def test_a_file_of_another_agent_is_not_taken_for_pis(tmp_path: Path) -> None:
    header = {"type": "session", "id": "s1", "cwd": "/repo"}
    theirs = [header, {"type": "text", "role": "user", "text": "Go."}, {"type": "step", "n": 1}]
    file = write_lines(tmp_path / "theirs.jsonl", theirs)
    with pytest.raises(TranscriptError, match="holds no session of Pi, Claude Code or Codex"):
        load_recording(file)
    message = {"type": "message", "message": {"role": "user", "content": "Go."}}
    for entries in ([], [message], [{"type": "model_change"}, message]):
        assert load_recording(write_lines(file, [header, *entries])).id == "s1"
