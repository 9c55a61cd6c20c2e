"""What the reader makes of Claude Code's lines."""

from __future__ import annotations

import io
import json
from typing import Any

from written_histories import SESSION, ClaudeCode, claude_code_session, said, use

from foredeck_agents.histories.claude_code import read_claude_code
from foredeck_agents.histories.lines import Lines
from foredeck_agents.histories.records import Exchange, HistorySession, exchanges


def lines_of(history: ClaudeCode) -> Lines:
    return Lines(io.BytesIO("".join(json.dumps(line) + "\n" for line in history.lines).encode()))


def read(history: ClaudeCode) -> tuple[list[HistorySession], list[Exchange]]:
    found = list(exchanges(read_claude_code(lines_of(history))))
    sessions = [item for item in found if isinstance(item, HistorySession)]
    return sessions, [item for item in found if isinstance(item, Exchange)]


def kinds(exchange: Exchange) -> list[str]:
    message: Any = exchange.message() or {}
    return [block["type"] for block in message.get("content", [])]


def test_what_the_user_did_not_type_is_told_apart() -> None:
    history = ClaudeCode()
    history.user("Caveat: made by a command", isMeta=True)
    history.user("What was said so far: much.", isCompactSummary=True)
    history.line("system", subtype="local_command", content="/cost")
    history.user("Go on.")
    _, found = read(history)
    (exchange,) = found
    assert [record.message["role"] for record in exchange.before] == [
        "custom",
        "compactionSummary",
        "custom",
        "user",
    ]
    assert exchange.before[1].message["summary"] == "What was said so far: much."


def test_the_output_of_local_commands_is_not_the_users_word() -> None:
    history = ClaudeCode()
    history.user("<command-name>/clear</command-name>\n<command-args></command-args>")
    history.user("<local-command-stdout>Cleared.</local-command-stdout>")
    history.user("<bash-stdout>a.py</bash-stdout><bash-stderr></bash-stderr>")
    history.user("<system-reminder>Monday.</system-reminder>\nMove the plus button")
    _, (exchange,) = read(history)
    roles = [record.message.get("customType", record.role) for record in exchange.before]
    assert roles == ["user", "claude-code:context", "claude-code:context", "user"]


def test_a_subagent_is_a_session_of_its_own_and_keeps_its_parent() -> None:
    history = claude_code_session()
    for number, side in ((0, True), (1, True), (2, False)):
        parent = {"parentUuid": "s0"} if number == 1 else {}
        line = history.line("user", message={"role": "user", "content": f"line {number}"})
        line |= {"isSidechain": side, "uuid": f"s{number}", "parentUuid": None, **parent}
    history.line(
        "user", message={"role": "user", "content": "by id"}, isSidechain=True, agentId="beef01"
    )
    sessions, found = read(history)
    assert [(s.id, s.started_by) for s in sessions] == [
        (SESSION, None),
        (f"agent-s0.{SESSION}", SESSION),
        (f"agent-beef01.{SESSION}", SESSION),
    ]
    assert [len(e.before) for e in found if e.session == f"agent-s0.{SESSION}"] == [2]


def test_the_start_of_another_session_in_a_file_is_its_parent() -> None:
    history = claude_code_session()
    continued = ClaudeCode("another")
    continued.user("Where were we?")
    history.lines += continued.lines
    sessions, _ = read(history)
    assert [(s.id, s.parent) for s in sessions] == [(SESSION, None), ("another", SESSION)]


def test_blocks_of_any_kind_are_kept_or_named() -> None:
    history = ClaudeCode()
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="},
    }
    history.answer("m", use("t1", "Shoot"))
    history.result("t1", [image, {"type": "tool_reference", "tool_name": "X"}, "bare"])
    history.answer("n", {"type": "redacted_thinking", "data": "xx"}, said("ok"))
    _, found = read(history)
    content = found[0].results[0].message["content"]
    assert content[0] == {"type": "image", "data": "QQ==", "mimeType": "image/png"}
    assert json.loads(content[1]["text"]) == {"type": "tool_reference", "tool_name": "X"}
    assert json.loads(content[2]["text"]) == "bare"
    assert kinds(found[1]) == ["text"]


def test_what_is_no_message_is_counted() -> None:
    history = claude_code_session()
    history.lines += [
        {"type": "user", "sessionId": "../../etc", "uuid": "x", "message": {"content": "hm"}},
        {"type": "user", "sessionId": SESSION, "uuid": "y", "message": None},
        {"type": "assistant", "sessionId": SESSION, "uuid": "z", "message": {"content": 5}},
        {"type": {"odd": 1}, "sessionId": SESSION},
    ]
    lines = lines_of(history)
    assert len(list(read_claude_code(lines))) == 12
    assert lines.tally.unreadable == {"without a session or a message": 3}
    assert lines.tally.other == {"summary": 1, "system": 1, "{'odd': 1}": 1}
