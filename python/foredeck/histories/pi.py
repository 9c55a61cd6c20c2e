"""Pi's session files: JSON lines, one for each entry, those of abandoned branches included.

`read_pi` yields the messages of all branches, to be stored. `load_transcript` follows one branch,
to be replayed, in every format that Pi has written so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from foredeck.context.messages.shape import Message
from foredeck.histories.lines import Line, Lines, Place, opened_lines
from foredeck.histories.records import (
    Compaction,
    HistoryMessage,
    HistorySession,
    Record,
    RecordedCall,
    RecordedMessage,
    Transcript,
    TranscriptError,
    folder,
    milliseconds,
    other_block,
    session_id,
    tool_call_id,
)

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
    message = _message_of(entry)
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


def load_transcript(path: Path) -> Transcript:
    """Read one file. Raises `TranscriptError` where it is not a session."""
    try:
        with opened_lines(path) as lines:
            entries = [line.value for line in lines]
    except OSError as error:
        raise TranscriptError(f"{path} cannot be read: {error.strerror or error}.") from error
    header = next((e for e in entries if e.get("type") == "session"), None)
    if header is None:
        raise TranscriptError(f"{path} has no session header: is it a Pi session file?")
    session, cwd = str(header.get("id") or path.stem), str(header.get("cwd") or "")
    transcript = Transcript(path, session, cwd, skipped=lines.tally.unreadable.total())
    places: dict[int, int] = {}
    for entry in _branch(entries):
        places[id(entry)] = len(transcript.messages)
        if entry.get("type") == "compaction":
            transcript.compactions.append(_compaction(entry, entries, places, transcript))
        message = _message_of(entry)
        if message is None:
            continue
        if message.get("role") == "assistant" and transcript.messages:
            transcript.calls.append(_recorded_call(message, entry, len(transcript.messages)))
        transcript.messages.append(RecordedMessage(message, entry.get("id")))
    return transcript


def _branch(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The entries from the root to the last one; all of them in a format without ids."""
    body = [entry for entry in entries if entry.get("type") != "session"]
    if not all("parentId" in entry and "id" in entry for entry in body):
        yield from body
        return
    by_id = {entry["id"]: entry for entry in body}
    chain: list[dict[str, Any]] = []
    current: dict[str, Any] | None = body[-1] if body else None
    # Bounded: in a damaged file an entry may be its own ancestor.
    while current is not None and len(chain) <= len(body):
        chain.append(current)
        current = by_id.get(current["parentId"])
    yield from reversed(chain)


def _message_of(entry: dict[str, Any]) -> Message | None:
    """The message that an entry contributes to the model's context, None where it has none."""
    kind = entry.get("type")
    if kind == "message":
        message = entry.get("message")
        return message if isinstance(message, dict) else None
    if kind == "custom_message":
        return {
            "role": "custom",
            "customType": entry.get("customType"),
            "content": entry.get("content"),
            "display": entry.get("display"),
            "timestamp": milliseconds(entry.get("timestamp")),
        }
    if kind == "branch_summary":
        return {
            "role": "branchSummary",
            "summary": entry.get("summary"),
            "fromId": entry.get("fromId"),
            "timestamp": milliseconds(entry.get("timestamp")),
        }
    return None


def _compaction(
    entry: dict[str, Any],
    entries: list[dict[str, Any]],
    places: dict[int, int],
    transcript: Transcript,
) -> Compaction:
    """A recorded compaction; the first message kept is named by id, or by number in old files."""
    kept: dict[str, Any] | None = None
    number = entry.get("firstKeptEntryIndex")
    if isinstance(number, int) and 0 <= number < len(entries):
        kept = entries[number]
    elif (first := entry.get("firstKeptEntryId")) is not None:
        kept = next((e for e in entries if e.get("id") == first), None)
    seen = len(transcript.messages)
    kept_from = places.get(id(kept), seen)
    # A provider refuses a result without its call, so that none can come first.
    while kept_from < seen and _is_result(transcript.messages[kept_from]):
        kept_from += 1
    return Compaction(seen, kept_from, str(entry.get("summary") or ""))


def _is_result(recorded: RecordedMessage) -> bool:
    return recorded.message.get("role") == "toolResult"


def _recorded_call(message: Message, entry: dict[str, Any], seen: int) -> RecordedCall:
    time_ms = message.get("timestamp")
    if not isinstance(time_ms, int | float):
        time_ms = milliseconds(entry.get("timestamp"))
    return RecordedCall(
        seen,
        int(time_ms),
        str(message.get("provider") or ""),
        str(message.get("model") or ""),
        str(message.get("api") or ""),
    )
