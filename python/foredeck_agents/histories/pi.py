"""Pi's session files: JSON lines, one per entry, with abandoned branches.

`read_pi` yields all branches, to be stored; `load_transcript` one, to be replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from foredeck.context.messages.items import text_block
from foredeck.context.messages.shape import Message
from foredeck.hosts.foreign_blocks import other_block
from foredeck.model.messages import fingerprint
from foredeck_agents.histories.lines import Line, Lines, Place, opened_lines
from foredeck_agents.histories.records import (
    MAX_BYTES,
    MAX_RECORDS,
    Compaction,
    HistoryMessage,
    HistorySession,
    Identities,
    MessageEdit,
    Record,
    RecordedCall,
    RecordedMessage,
    SystemChange,
    Transcript,
    TranscriptError,
    folder,
    milliseconds,
    session_id,
    tool_call_id,
)

HARNESS = "pi"


_ENTRIES = frozenset(
    {
        "branch_summary",
        "compaction",
        "context_edit",
        "custom",
        "custom_message",
        "label",
        "model_change",
        "session_info",
        "thinking_level_change",
    }
)
"""Types of entries that hold no message."""


def is_pi(value: dict[str, Any]) -> bool:
    """Whether a line is the header of one of Pi's session files."""
    return value.get("type") == "session" and "id" in value


def is_entry(value: dict[str, Any]) -> bool:
    """Whether a line is one of Pi's entries; other agents have such headers, too."""
    kind = value.get("type")
    return "message" in value if kind == "message" else str(kind) in _ENTRIES


def read_pi(lines: Lines) -> Iterator[Record]:
    """The session and its messages on all branches, each as the first model call saw it."""
    session: str | None = None
    unseen, around = _Unseen(), _Around()
    for line in lines:
        kind, system = line.value.get("type"), around.take(line.value)
        if kind == "session":
            if session is None and (started := _start(line.value)) is not None:
                session = started.id
                yield started
            continue
        message = _message(line.value)
        if message is None or message["role"] == "system":
            unseen.edit(line.value)
            lines.tally.other[str(kind) if message is None else "system"] += 1
        elif session is None:
            lines.tally.lose("before the session's own line", line.place.line)
        else:
            is_answer = message["role"] == "assistant"
            if is_answer or unseen.is_full:
                yield from unseen.release()
            record = _record(line, session, message)
            unseen.add(replace(record, system=system) if is_answer else record)
    yield from unseen.release()


class _Unseen:
    """Messages before the next answer, which an edit can still change."""

    def __init__(self) -> None:
        self._records: dict[Any, HistoryMessage] = {}
        self._edits: dict[str, dict[str, Any]] = {}
        self._size = 0

    @property
    def is_full(self) -> bool:
        """Whether the next message must wait no longer."""
        return len(self._records) >= MAX_RECORDS or self._size >= MAX_BYTES

    def add(self, record: HistoryMessage) -> None:
        known = self._records.get(record.entry)
        # An id that is there already is another message's, or the same line's a second time.
        is_own = known is None and record.entry is not None
        self._records[record.entry if is_own else (record.place, len(self._records))] = record
        self._size += record.size

    def edit(self, entry: dict[str, Any]) -> None:
        """Applies an edit to one of these messages."""
        if (target := _edited_by(entry)) is not None:
            self._edits[target] = entry

    def release(self) -> Iterator[HistoryMessage]:
        """All of them, which are final now."""
        for id, record in self._records.items():
            edit = self._edits.get(id)
            message = record.message if edit is None else _edited(record.message, edit)
            if message is not None:
                yield replace(record, message=message, is_edited=edit is not None)
        self._records, self._edits, self._size = {}, {}, 0


def _id(value: object) -> str | None:
    return value if isinstance(value, str) else None


class _Around:
    """System messages around the chat, on every branch."""

    def __init__(self) -> None:
        self._by_entry: dict[str | None, tuple[Message, ...]] = {}

    def take(self, entry: dict[str, Any]) -> tuple[Message, ...]:
        """The system messages that a call after this entry is shown."""
        before = self._by_entry.get(_id(entry.get("parentId")), ())
        change = _system_change(entry, 0)
        if change is not None:
            before = (change.message,) if change.is_whole else (*before, change.message)
        if before:
            self._by_entry[_id(entry.get("id"))] = before
        return before


def _start(header: dict[str, Any]) -> HistorySession | None:
    id = session_id(header.get("id"))
    if id is None:
        return None
    return HistorySession(id, HARNESS, folder(header.get("cwd")), _parent(header))


def _parent(header: dict[str, Any]) -> str | None:
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
    """A message as Pi has it, to be recognised when Pi resumes the session."""
    entry = line.value.get("id")
    return HistoryMessage(
        session,
        line.place,
        line.size,
        _sound(message, session, line.place),
        entry=entry if isinstance(entry, str) else None,
        parent=_id(line.value.get("parentId")),
    )


def _sound(message: Message, session: str, place: Place) -> Message:
    content = message.get("content")
    if isinstance(content, list):
        blocks = [_sound_block(block, session, place) for block in content]
        message = message if blocks == content else {**message, "content": blocks}
    if message["role"] != "toolResult":
        return message
    name = message.get("toolName")
    own = {"toolCallId": tool_call_id(message.get("toolCallId"), session, place)}
    return {**message, **own} | ({} if isinstance(name, str) else {"toolName": ""})


def _sound_block(block: Any, session: str, place: Place) -> Any:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "toolCall":
        own = {"id": tool_call_id(block.get("id"), session, place)}
        return {**block, **own} | ({} if isinstance(block.get("name"), str) else {"name": ""})
    is_text = kind not in ("text", "thinking") or isinstance(block.get(kind), str)
    return block if is_text else other_block(block)


def load_transcript(path: Path, *, branches: bool = False) -> Transcript:
    """Reads one file, with `branches` the calls of all branches. Raises `TranscriptError`."""
    try:
        with opened_lines(path) as lines:
            entries = _each_once(line.value for line in lines)
    except OSError as error:
        raise TranscriptError(f"{path} cannot be read: {error.strerror or error}.") from error
    header = next((e for e in entries if e.get("type") == "session"), None)
    if header is None:
        raise TranscriptError(f"{path} has no session header: is it a Pi session file?")
    session, cwd = str(header.get("id") or path.stem), str(header.get("cwd") or "")
    transcript = Transcript(path, session, cwd)
    transcript.skipped, transcript.lost = lines.tally.unreadable.total(), lines.tally.places
    _follow(transcript, entries, entries[-1])
    if branches:
        _follow_others(transcript, entries)
    return transcript


def _each_once(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    lines: set[str] = set()
    unique = []
    for number, given in enumerate(entries):
        line, entry = fingerprint(given), given
        if not isinstance(entry.get("id", ""), str):
            entry = {**entry, "id": f"line {number}"}
        if not isinstance(entry.get("parentId", ""), str | None):
            entry = {**entry, "parentId": None}
        if line not in lines or not ("id" in entry or "timestamp" in entry):
            unique.append(entry)
        lines.add(line)
    return unique


def _follow_others(transcript: Transcript, entries: list[dict[str, Any]]) -> None:
    order = {entry.get("id"): number for number, entry in enumerate(entries)}
    parents = {entry.get("parentId") for entry in entries}
    known = {call.identity: call for call in transcript.calls}
    for leaf in entries[:-1]:
        if "parentId" not in leaf or "id" not in leaf or leaf["id"] in parents:
            continue
        other = Transcript(transcript.path, transcript.id, transcript.cwd)
        _follow(other, entries, leaf)
        new = [call for call in other.calls if call.identity not in known]
        if new:
            transcript.branches.append(other)
            number = len(transcript.branches)
            known |= {call.identity: replace(call, branch=number) for call in new}

    def place(call: RecordedCall) -> int:
        return order.get(transcript.along(call).messages[call.seen].entry, 0)

    transcript.calls = sorted(known.values(), key=place)


def _follow(transcript: Transcript, entries: list[dict[str, Any]], last: dict[str, Any]) -> None:
    places: dict[int, int] = {}
    indexes: dict[Any, int] = {}
    for entry in _branch(entries, last):
        seen = places[id(entry)] = len(transcript.messages)
        if entry.get("type") == "compaction":
            transcript.compactions.append(_compaction(entry, entries, places, transcript))
        if (change := _system_change(entry, seen)) is not None:
            transcript.system.append(change)
        if (index := indexes.get(_edited_by(entry))) is not None:
            original = transcript.messages[index]
            edited = _edited(original.message, entry)
            shown = None if edited is None else replace(original, message=edited)
            transcript.edits.append(MessageEdit(seen, index, shown))
        message = _message_of(entry)
        if message is None or message.get("role") == "system":
            continue
        if message.get("role") == "assistant" and transcript.messages:
            transcript.calls.append(_recorded_call(message, entry, seen, transcript.id))
        if entry.get("id"):
            indexes[entry["id"]] = seen
        transcript.messages.append(RecordedMessage(message, entry.get("id")))


def _branch(entries: list[dict[str, Any]], last: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Entries from the root to this one; all in a format without ids."""
    body = [entry for entry in entries if entry.get("type") != "session"]
    if not all("parentId" in entry and "id" in entry for entry in body):
        yield from body
        return
    by_id = {entry["id"]: entry for entry in body}
    chain: list[dict[str, Any]] = []
    current: dict[str, Any] | None = last if body else None
    # Bounded: in a damaged file an entry may be its own ancestor.
    while current is not None and len(chain) <= len(body):
        chain.append(current)
        current = by_id.get(current["parentId"])
    yield from reversed(chain)


def _message_of(entry: dict[str, Any]) -> Message | None:
    kind = entry.get("type")
    if kind == "message":
        message = entry.get("message")
        return _as_today(message) if isinstance(message, dict) else None
    if kind == "custom_message":
        content, details = entry.get("content"), entry.get("details")
        return {
            "role": "custom",
            "customType": entry.get("customType"),
            "content": [] if content is None else content,
            "display": entry.get("display"),
            **({} if details is None else {"details": details}),
            "timestamp": milliseconds(entry.get("timestamp")),
        }
    if kind == "branch_summary" and entry.get("summary"):
        return {
            "role": "branchSummary",
            "summary": entry.get("summary"),
            "fromId": entry.get("fromId"),
            "timestamp": milliseconds(entry.get("timestamp")),
        }
    return None


def _as_today(message: Message) -> Message:
    role = message.get("role")
    if role == "hookMessage":
        return {**message, "role": "custom"}
    if role in ("system", "user", "assistant", "toolResult") and message.get("content") is None:
        return {**message, "content": "" if role == "system" else []}
    return message


def _system_change(entry: dict[str, Any], seen: int) -> SystemChange | None:
    if entry.get("type") == "compaction":
        message = entry.get("systemMessage")
        return SystemChange(seen, message, is_whole=True) if isinstance(message, dict) else None
    message = _message_of(entry) if entry.get("type") == "message" else None
    is_system = message is not None and message.get("role") == "system"
    return SystemChange(seen, message) if message is not None and is_system else None


def _edited_by(entry: dict[str, Any]) -> str | None:
    target = entry.get("targetId") if entry.get("type") == "context_edit" else None
    return target if isinstance(target, str) else None


_WITH_CONTENT = frozenset({"user", "assistant", "toolResult", "custom"})


def _edited(message: Message, edit: dict[str, Any]) -> Message | None:
    """The message after an edit; None if removed."""
    # The same as Pi's `projectContextEntry`. The newest edit of a message counts alone.
    replacement = edit.get("replacement")
    if replacement is None:
        return None
    role = message.get("role")
    if role not in _WITH_CONTENT or not isinstance(replacement, dict):
        return message
    content = replacement.get("content")
    if role in ("assistant", "toolResult") and isinstance(content, str):
        content = [text_block(content)]
    return {**message, "content": content}


def _compaction(
    entry: dict[str, Any],
    entries: list[dict[str, Any]],
    places: dict[int, int],
    transcript: Transcript,
) -> Compaction:
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


def _recorded_call(
    message: Message, entry: dict[str, Any], seen: int, session: str
) -> RecordedCall:
    time_ms = message.get("timestamp")
    if not isinstance(time_ms, int | float):
        time_ms = milliseconds(entry.get("timestamp"))
    return RecordedCall(
        seen,
        int(time_ms),
        str(message.get("provider") or ""),
        str(message.get("model") or ""),
        str(message.get("api") or ""),
        Identities().of(
            HistoryMessage(
                session,
                Place(0, 0),
                0,
                message,
                _id(entry.get("id")),
                parent=_id(entry.get("parentId")),
            )
        ),
    )
