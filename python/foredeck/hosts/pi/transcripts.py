"""Reading recorded Pi sessions, in every format that Pi has written so far."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from foredeck.errors import ForedeckError
from foredeck.regular_files import read_regular

Message = dict[str, Any]

MOST_BYTES = 1024 * 1024 * 1024
"""Of one recorded session."""


class TranscriptError(ForedeckError):
    """A file that is not a recorded session, or not to be read."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class RecordedMessage:
    """One message on the branch: the host's shape, its entry id, and when it was written."""

    message: Message
    entry: str | None


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One model call: it saw the first `seen` messages of the branch."""

    seen: int
    time_ms: int
    provider: str
    model: str
    api: str

    @property
    def name(self) -> str:
        """`provider/model`."""
        return f"{self.provider}/{self.model}"


@dataclass(frozen=True, slots=True)
class Compaction:
    """The host replaced what stood before: calls that see `seen` messages or more were shown
    `summary` and the messages from `kept_from` on."""

    seen: int
    kept_from: int
    summary: str


@dataclass(slots=True)
class Transcript:
    """A recorded session along the branch of its last entry."""

    path: Path
    id: str
    cwd: str
    messages: list[RecordedMessage] = field(default_factory=list)
    calls: list[RecordedCall] = field(default_factory=list)
    compactions: list[Compaction] = field(default_factory=list)
    """What the host did at the time; a replay does not follow them."""
    skipped: int = 0
    """Lines that are no JSON objects: a file cut off in the middle has one."""

    @property
    def tool_calls(self) -> int:
        """Tool results on the branch."""
        return sum(1 for r in self.messages if r.message.get("role") == "toolResult")


def load_transcript(path: Path) -> Transcript:
    """Read one file. Raises `TranscriptError` where it is not a session."""
    try:
        entries, skipped = _entries(path)
    except OSError as error:
        raise TranscriptError(f"{path} cannot be read: {error.strerror or error}.") from error
    header = next((e for e in entries if e.get("type") == "session"), None)
    if header is None:
        raise TranscriptError(f"{path} has no session header: is it a Pi session file?")
    transcript = Transcript(
        path, str(header.get("id") or path.stem), str(header.get("cwd") or ""), skipped=skipped
    )
    places: dict[int, int] = {}
    for entry in _branch(entries):
        places[id(entry)] = len(transcript.messages)
        if entry.get("type") == "compaction":
            transcript.compactions.append(_compaction(entry, entries, places, transcript))
        message = message_of(entry)
        if message is None:
            continue
        if message.get("role") == "assistant" and transcript.messages:
            transcript.calls.append(_call(message, entry, len(transcript.messages)))
        transcript.messages.append(RecordedMessage(message, entry.get("id")))
    return transcript


def _entries(path: Path) -> tuple[list[dict[str, Any]], int]:
    entries: list[dict[str, Any]] = []
    skipped = 0
    for line in read_regular(path, MOST_BYTES).split(b"\n"):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except ValueError:
            skipped += 1
            continue
        if isinstance(entry, dict):
            entries.append(entry)
    return entries, skipped


def _branch(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The entries from the root to the last one; all of them in a format without ids."""
    body = [entry for entry in entries if entry.get("type") != "session"]
    if not all("parentId" in entry and "id" in entry for entry in body):
        yield from body
        return
    by_id = {entry["id"]: entry for entry in body}
    chain: list[dict[str, Any]] = []
    current: dict[str, Any] | None = body[-1] if body else None
    while current is not None and len(chain) <= len(body):
        chain.append(current)
        current = by_id.get(current["parentId"])
    yield from reversed(chain)


def message_of(entry: dict[str, Any]) -> Message | None:
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
            "timestamp": _milliseconds(entry.get("timestamp")),
        }
    if kind == "branch_summary":
        return {
            "role": "branchSummary",
            "summary": entry.get("summary"),
            "fromId": entry.get("fromId"),
            "timestamp": _milliseconds(entry.get("timestamp")),
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
    while kept_from < seen and _is_result(transcript.messages[kept_from]):
        kept_from += 1
    return Compaction(seen, kept_from, str(entry.get("summary") or ""))


def _is_result(recorded: RecordedMessage) -> bool:
    return recorded.message.get("role") == "toolResult"


def _call(message: Message, entry: dict[str, Any], seen: int) -> RecordedCall:
    time_ms = message.get("timestamp")
    if not isinstance(time_ms, int | float):
        time_ms = _milliseconds(entry.get("timestamp"))
    return RecordedCall(
        seen,
        int(time_ms),
        str(message.get("provider") or ""),
        str(message.get("model") or ""),
        str(message.get("api") or ""),
    )


def _milliseconds(stamp: Any) -> int:
    if isinstance(stamp, int | float):
        return int(stamp)
    try:
        return int(datetime.fromisoformat(str(stamp).replace("Z", "+00:00")).timestamp() * 1000)
    except ValueError:
        return 0
