"""Recorded sessions of every known agent, as ones of Pi: what a replay and its judge are given.

Tools get the names and arguments that Pi's have, so that reads and edits count as
such. Of a file that holds a session and its subagents one session is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foredeck.context.messages.shape import Message
from foredeck.histories import pi
from foredeck.histories.exchanges import Exchange, exchanges
from foredeck.histories.finding import SUFFIXES, history_files
from foredeck.histories.formats import Format, format_of
from foredeck.histories.lines import opened_lines
from foredeck.histories.pi import load_transcript
from foredeck.histories.records import HistorySession
from foredeck.histories.tools import in_pis_tools
from foredeck.histories.transcripts import (
    Compaction,
    RecordedCall,
    RecordedMessage,
    Transcript,
    TranscriptError,
)

NO_MODEL = "<synthetic>"
"""What Claude Code names as the model of an answer that it wrote itself."""


def find_recordings(paths: Sequence[Path]) -> list[Path]:
    """The session files among files and folders, those of a folder in order of their names.

    A file that is named twice, or by its folder too, is found once. Raises `TranscriptError` for
    a path that does not exist or a folder without any.
    """
    for path in paths:
        if not path.exists():
            raise TranscriptError(f"{path} does not exist.")
        if not any(history_files([path])):
            suffixes = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
            raise TranscriptError(f"{path} holds no recorded sessions ({suffixes}).")
    return list(history_files(paths))


def stem_of(path: Path) -> str:
    """A session file's name without its suffixes."""
    suffix = next((suffix for suffix in SUFFIXES if path.name.endswith(suffix)), path.suffix)
    return path.name.removesuffix(suffix)


def load_recording(path: Path, session: str | None = None) -> Transcript:
    """Read one file of any known agent. `session`: which of its sessions, by default the first;
    the others are its subagents. Raises `TranscriptError` where it holds no such session."""
    try:
        known = format_of(path)
    except OSError as error:
        raise TranscriptError(f"{path} cannot be read: {error.strerror or error}.") from error
    if known is None or known.harness == pi.HARNESS:
        return load_transcript(path)
    return _converted(path, known, session)


def _converted(path: Path, known: Format, session: str | None) -> Transcript:
    transcript: Transcript | None = None
    with opened_lines(path) as lines:
        for found in exchanges(known.read(lines)):
            if isinstance(found, HistorySession):
                if transcript is None and session in (None, found.id):
                    transcript = Transcript(path, found.id, found.cwd)
            elif transcript is not None and found.session == transcript.id:
                _add(transcript, found)
        if transcript is None:
            which = "" if session is None else f" {session}"
            raise TranscriptError(f"{path} holds no session{which}.")
        transcript.skipped = lines.tally.unreadable.total()
    return transcript


def _add(transcript: Transcript, exchange: Exchange) -> None:
    """An exchange's messages, and the call that its answer was."""
    for record in exchange.before:
        _add_said(transcript, record.message, record.entry)
    answer = exchange.message()
    if answer is not None:
        if transcript.messages and answer.get("model") != NO_MODEL:
            transcript.calls.append(_call(answer, len(transcript.messages)))
        entry = exchange.answer[0].entry
        transcript.messages.append(RecordedMessage(_sealed(in_pis_tools(answer)), entry))
    for record in exchange.results:
        transcript.messages.append(RecordedMessage(in_pis_tools(record.message), record.entry))


def _add_said(transcript: Transcript, message: Message, entry: str | None) -> None:
    if message.get("role") == "compactionSummary":
        seen = len(transcript.messages)
        transcript.compactions.append(Compaction(seen, seen, str(message.get("summary") or "")))
    else:
        transcript.messages.append(RecordedMessage(message, entry))


def _call(answer: Message, seen: int) -> RecordedCall:
    names = (str(answer.get(name) or "") for name in ("provider", "model", "api"))
    return RecordedCall(seen, int(answer.get("timestamp") or 0), *names)


def _sealed(answer: Message) -> Message:
    """The answer with its reasoning sealed, as it was when it was sent: the seals of a history are
    not read in."""
    blocks: list[Any] = answer["content"]
    sealed = [
        {**block, "thinkingSignature": "sealed"} if block.get("type") == "thinking" else block
        for block in blocks
    ]
    return {**answer, "content": sealed}
