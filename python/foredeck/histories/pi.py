"""Pi's session files: JSON lines, one for each entry, those of abandoned branches included."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from foredeck.histories.lines import Line, Lines, Place
from foredeck.histories.records import (
    HistoryMessage,
    HistorySession,
    Message,
    Record,
    folder,
    milliseconds,
    other_block,
    session_id,
    tool_call_id,
)
from foredeck.hosts.pi.transcripts import message_of

HARNESS = "pi"


def is_pi(value: dict[str, Any]) -> bool:
    """Whether a line is the header of one of Pi's session files."""
    return value.get("type") == "session" and "id" in value and "cwd" in value


def read_pi(lines: Lines) -> Iterator[Record]:
    """The session of a file and its messages, those of all branches in the order of the file."""
    session: str | None = None
    for line in lines:
        kind = line.value.get("type")
        if kind == "session":
            if session is None and (started := _start(line.value)) is not None:
                session = started.id
                yield started
            continue
        message = _message(line.value)
        if message is None:
            lines.tally.other[str(kind)] += 1
        elif session is None:
            lines.tally.unreadable["before the session's own line"] += 1
        else:
            yield _record(line, session, message)


def _start(header: dict[str, Any]) -> HistorySession | None:
    id = session_id(header.get("id"))
    if id is None:
        return None
    return HistorySession(id, HARNESS, folder(header.get("cwd")), _parent(header))


def _parent(header: dict[str, Any]) -> str | None:
    """The session that this one was forked from: Pi names its file, whose name ends in the id."""
    file = header.get("parentSession")
    if not isinstance(file, str):
        return None
    return session_id(PurePath(file).name.removesuffix(".jsonl").rpartition("_")[2])


def _message(entry: dict[str, Any]) -> Message | None:
    if entry.get("type") == "compaction":
        return {
            "role": "compactionSummary",
            "summary": str(entry.get("summary") or ""),
            "tokensBefore": entry.get("tokensBefore"),
            "timestamp": milliseconds(entry.get("timestamp")),
        }
    message = message_of(entry)
    return message if message is not None and isinstance(message.get("role"), str) else None


def _record(line: Line, session: str, message: Message) -> HistoryMessage:
    """A message as Pi has it, so that it is known again where Pi resumes the session."""
    entry = line.value.get("id")
    return HistoryMessage(
        session,
        line.place,
        line.size,
        _sound(message, session, line.place),
        entry=entry if isinstance(entry, str) else None,
    )


def _sound(message: Message, session: str, place: Place) -> Message:
    """The message as it is, but for what no Pi writes: texts that are none, and tool call ids that
    could be taken for those of other objects."""
    content = message.get("content")
    if isinstance(content, list):
        blocks = [_sound_block(block, session, place) for block in content]
        message = message if blocks == content else {**message, "content": blocks}
    if message["role"] != "toolResult":
        return message
    return {**message, "toolCallId": tool_call_id(message.get("toolCallId"), session, place)}


def _sound_block(block: Any, session: str, place: Place) -> Any:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "toolCall":
        return {**block, "id": tool_call_id(block.get("id"), session, place)}
    is_text = kind not in ("text", "thinking") or isinstance(block.get(kind), str)
    return block if is_text else other_block(block)
