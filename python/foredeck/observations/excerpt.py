"""The messages of a chunk as an observer reads them: quoted, dated, and bounded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo

from foredeck.observations.chunks import CHARS_PER_TOKEN, Chunk, ChunkRules
from foredeck.observations.messages import SourceMessage

_SPEAKERS = {"user": "user", "assistant": "agent", "context": "context"}
_TAGS = re.compile(r"<(?=/?(?:conversation|notes|observations|current-task|suggested-response)\b)")
_BEGINNING = 2 / 3
"""Of what is shown of a long result; the rest is its end."""
_CALL_CHARS = 400
_FIRST_WORDS = 60


@dataclass(frozen=True, slots=True)
class WallTime:
    """How times are written: in `zone`, None for that of this machine."""

    zone: tzinfo | None = None

    def at(self, time_ms: int) -> datetime:
        """The moment in the zone."""
        moment = datetime.fromtimestamp(time_ms / 1000, self.zone)
        return moment if self.zone else moment.astimezone()

    def date(self, time_ms: int) -> str:
        """`2026-05-03`."""
        return f"{self.at(time_ms):%Y-%m-%d}"

    def time(self, time_ms: int) -> str:
        """`09:15`."""
        return f"{self.at(time_ms):%H:%M}"

    def moment(self, time_ms: int) -> str:
        """`2026-05-03 09:15`."""
        return f"{self.at(time_ms):%Y-%m-%d %H:%M}"

    def time_ms(self, date: str, time: str) -> int:
        """Milliseconds of a date and a time as written here. Raises `ValueError`."""
        moment = datetime.strptime(f"{date} {time}", "%Y-%m-%d %H:%M").replace(tzinfo=self.zone)
        return int((moment if self.zone else moment.astimezone()).timestamp() * 1000)


def excerpt(chunk: Chunk, rules: ChunkRules, clock: WallTime) -> str:
    """What an observer is shown of a chunk.

    What user and agent said stands whole, of results the beginning and the end; what foredeck
    itself has written is left out. Every line that is not of this frame is indented, so that none
    can pass for a heading, and no text can close a tag of the prompt.
    """
    lines: list[str] = []
    date = ""
    for message in chunk.messages:
        if message.is_ours or message.is_void or message.kind == "opaque":
            continue
        if message.time_ms and (day := clock.date(message.time_ms)) != date:
            date = day
            lines.append(date)
        lines.append(_heading(message, clock))
        lines += _quoted(_text(chunk, message, rules))
        lines += (f"  calls {call.tool} {_one_line(call.shown)}" for call in message.calls)
    return "\n".join(lines)


def source_text(chunk: Chunk) -> str:
    """All that a chunk's messages say, results in full: where names must stand to be believed."""
    return "\n".join(_sources(chunk))


def opening(message: SourceMessage) -> str:
    """How a message begins, to find it by: `the user's, "Fix the login..."`."""
    said = message.text
    if message.kind == "result" or not said:
        # What a tool has put out may be nothing, or what many others did.
        said = " ".join(
            [message.tool, message.shown, *(f"{c.tool} {c.shown}" for c in message.calls)]
        )
    words = " ".join(said.split())
    shown = words if len(words) <= _FIRST_WORDS else words[: _FIRST_WORDS - 3] + "..."
    who = "the user's" if message.kind == "user" else f"the {_speaker(message)}'s"
    return f'{who}, "{_TAGS.sub("< ", shown)}"'


def _sources(chunk: Chunk) -> Iterator[str]:
    for message in chunk.messages:
        if message.is_ours:
            continue
        yield chunk.text_of(message)
        yield f"{message.tool} {message.shown}"
        for call in message.calls:
            yield f"{call.tool} {call.path} {call.shown}\n{call.text}"


def _speaker(message: SourceMessage) -> str:
    return _SPEAKERS.get(message.kind, "result")


def _heading(message: SourceMessage, clock: WallTime) -> str:
    time = f"{clock.time(message.time_ms)} " if message.time_ms else ""
    if message.kind != "result":
        return f"{time}{_speaker(message)}:"
    state = " (failed)" if message.failed else ""
    return f"{time}result of {message.tool} {_one_line(message.shown)}{state}:".replace(" :", ":")


def _text(chunk: Chunk, message: SourceMessage, rules: ChunkRules) -> str:
    text = chunk.text_of(message)
    return without_middle(text, message, rules) if message.kind == "result" else text


def without_middle(text: str, message: SourceMessage, rules: ChunkRules) -> str:
    """Beginning and end of a result, with how much is left out between."""
    rate = max(1.0, len(text) / message.tokens) if message.tokens else CHARS_PER_TOKEN
    room = int(rules.result * rate)
    if len(text) <= room:
        return text
    begins = int(room * _BEGINNING)
    ends = room - begins
    return f"{text[:begins]}\n({len(text) - room:,} characters left out)\n{text[-ends:]}"


def _quoted(text: str) -> Iterator[str]:
    return (f"  {line}" for line in _TAGS.sub("< ", text).split("\n") if line.strip())


def _one_line(text: str) -> str:
    line = " ".join(_TAGS.sub("< ", text).split())
    return line if len(line) <= _CALL_CHARS else line[: _CALL_CHARS - 3] + "..."
