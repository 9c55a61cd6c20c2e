"""One long session, joined from recorded ones, with facts planted in its early messages.

The recorded sessions follow each other as if one user had gone on for days, over and over until
there are as many calls as asked for. Each keeps its messages and its pauses. A fact is a sentence
that nothing else in the session says; the same sessions always give the same session.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from foredeck.context.messages.shape import Message
from foredeck.histories.recordings import load_recording
from foredeck.histories.records import RecordedCall, RecordedMessage, Transcript

BETWEEN_MS = 20 * 60_000
"""From the end of one session to the beginning of the next."""

EARLY = 0.6
"""Facts are planted in the messages before this share of the calls."""

_MODEL = {"provider": "anthropic", "model": "joined", "api": "anthropic-messages"}
"""Of all answers: a change of model would make every prompt uncached."""

_COLOURS = (
    "amber",
    "cobalt",
    "crimson",
    "ivory",
    "jade",
    "lilac",
    "ochre",
    "sable",
    "teal",
    "umber",
)
_THINGS = (
    "relay",
    "ledger",
    "beacon",
    "harbour",
    "turbine",
    "archive",
    "lantern",
    "gantry",
    "sluice",
)

Speaker = Literal["user", "agent", "result"]
SPEAKERS: tuple[Speaker, ...] = ("user", "agent", "result")


@dataclass(frozen=True, slots=True)
class PlantedFact:
    """A fact: who says it, what it is about, and what nothing else in the session says."""

    speaker: Speaker
    subject: str
    value: str

    @property
    def sentence(self) -> str:
        """As it stands in the message."""
        return f"The {self.subject} is reached under the code {self.value}."

    @property
    def question(self) -> str:
        """What is looked for, for a search."""
        return f"{self.subject} code"


def make_facts(count: int) -> list[PlantedFact]:
    """So many facts, each about something else; the speakers take turns."""
    pairs = [f"{colour} {thing}" for thing in _THINGS for colour in _COLOURS]
    return [
        PlantedFact(
            SPEAKERS[number % len(SPEAKERS)],
            f"{pairs[number % len(pairs)]} {number}",
            f"zq{number * 7919 % 100_003:05d}x{number}",
        )
        for number in range(count)
    ]


@dataclass(slots=True)
class _Joining:
    """A session as it grows."""

    messages: list[RecordedMessage] = field(default_factory=list)
    calls: list[RecordedCall] = field(default_factory=list)
    end_ms: int = 0

    def append(self, other: Transcript, prefix: str, most: int) -> None:
        """Let another session follow, up to `most` calls in all."""
        times = [time for r in other.messages if (time := _time(r.message))]
        shift = self.end_ms + BETWEEN_MS - min(times, default=0) if self.end_ms else 0
        calls = {call.seen: call for call in other.calls}
        first = len(self.messages)
        for index, recorded in enumerate(other.messages):
            if index in calls:
                if len(self.calls) == most:
                    return
                time_ms = calls[index].time_ms + shift
                self.calls.append(RecordedCall(first + index, time_ms, *_MODEL.values()))
            message = _shifted(recorded.message, prefix, shift)
            self.messages.append(RecordedMessage(message, f"{prefix}{index}"))
            self.end_ms = max(self.end_ms, _time(message))


def join_sessions(paths: Sequence[Path], calls: int, facts: Sequence[PlantedFact]) -> Transcript:
    """The joined session, with these facts planted. Raises `TranscriptError`."""
    recorded = [load_recording(path) for path in paths]
    joining = _Joining()
    turn = 0
    while len(joining.calls) < calls and any(each.calls for each in recorded):
        for number, each in enumerate(recorded):
            if len(joining.calls) < calls:
                joining.append(each, f"r{turn}s{number}-", calls)
        turn += 1
    joined = Transcript(Path("joined.jsonl"), "joined", recorded[0].cwd)
    joined.messages, joined.calls = joining.messages, joining.calls
    plant(joined, facts)
    return joined


def plant(transcript: Transcript, facts: Sequence[PlantedFact]) -> None:
    """Let early messages say these facts, at even distances."""
    if not facts or not transcript.calls:
        return
    early = transcript.calls[int((len(transcript.calls) - 1) * EARLY)].seen
    taken: set[int] = set()
    for number, fact in enumerate(facts):
        wanted = int(early * (number + 0.5) / len(facts))
        for index in _near(wanted, len(transcript.messages)):
            recorded = transcript.messages[index]
            said = _saying(recorded.message, fact) if index not in taken else None
            if said is not None:
                transcript.messages[index] = RecordedMessage(said, recorded.entry)
                taken.add(index)
                break


def write_session(transcript: Transcript, path: Path) -> None:
    """As a session file of Pi's."""
    header = {"type": "session", "version": 3, "id": transcript.id, "cwd": transcript.cwd}
    entries: list[dict[str, Any]] = [header]
    parent: str | None = None
    for recorded in transcript.messages:
        at = datetime.fromtimestamp(_time(recorded.message) / 1000, UTC).isoformat()
        entry = {"type": "message", "id": recorded.entry, "parentId": parent, "timestamp": at}
        entries.append({**entry, "message": recorded.message})
        parent = recorded.entry
    lines = (json.dumps(entry, ensure_ascii=True) for entry in entries)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _near(wanted: int, length: int) -> Iterator[int]:
    """Indexes by their distance from one."""
    for distance in range(length):
        yield from (n for n in sorted({wanted - distance, wanted + distance}) if 0 <= n < length)


def _saying(message: Message, fact: PlantedFact) -> Message | None:
    """The message with the fact in it; None where somebody else speaks, or nobody who is heard."""
    role = {"user": "user", "agent": "assistant", "result": "toolResult"}[fact.speaker]
    blocks = message.get("content")
    if message.get("role") != role or message.get("stopReason") in ("error", "aborted"):
        return None
    if isinstance(blocks, str):
        return {**message, "content": f"{blocks}\n{fact.sentence}"}
    if not isinstance(blocks, list):
        return None
    for number, block in enumerate(blocks):
        if block.get("type") == "text" and block.get("text"):
            said = {**block, "text": f"{block['text']}\n{fact.sentence}"}
            return {**message, "content": [*blocks[:number], said, *blocks[number + 1 :]]}
    return None


def _shifted(message: Message, prefix: str, shift: int) -> Message:
    """A message of a later time, with ids of calls that no other session has."""
    made = {key: value for key, value in message.items() if key not in ("usage", "details")}
    made["timestamp"] = _time(message) + shift
    if message.get("role") == "assistant":
        made |= _MODEL
        made["content"] = [
            {**block, "id": _id(prefix, block.get("id"))}
            if block.get("type") == "toolCall"
            else block
            for block in message.get("content") or ()
        ]
    if message.get("role") == "toolResult":
        made["toolCallId"] = _id(prefix, message.get("toolCallId"))
    return made


def _id(prefix: str, id: object) -> str:
    """An id that a provider takes as it is: at most 64 characters."""
    plain = "".join(c if c.isalnum() or c in "_-" else "_" for c in str(id))
    return f"{prefix}{plain}"[:64]


def _time(message: Message) -> int:
    time = message.get("timestamp")
    return int(time) if isinstance(time, int | float) else 0
