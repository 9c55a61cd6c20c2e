"""Files of histories: finding them, telling their format, and reading one to be replayed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from foredeck.context.messages.shape import Message
from foredeck.histories import claude_code, codex, pi
from foredeck.histories.lines import Lines, opened_lines
from foredeck.histories.pi import load_transcript
from foredeck.histories.records import (
    Compaction,
    Exchange,
    HistorySession,
    Identities,
    Record,
    RecordedCall,
    RecordedMessage,
    Transcript,
    TranscriptError,
    exchanges,
)
from foredeck.histories.tools import in_pis_tools

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


def load_recording(path: Path, session: str | None = None, *, branches: bool = False) -> Transcript:
    """Read one file of any known agent, as a session of Pi.

    Tools get the names and arguments of Pi's, so that reads and edits count as such. `session`:
    which of the file's sessions, by default the first; the others are its subagents. `branches`: of
    a session of Pi's the calls of all its branches. Raises `TranscriptError` where it holds no such
    session.
    """
    found = load_recordings(path, branches=branches)
    for transcript in found:
        if session in (None, transcript.id):
            return transcript
    which = "" if session is None else f" {session}"
    raise TranscriptError(f"{path} holds no session{which}.")


def load_recordings(path: Path, *, branches: bool = False) -> list[Transcript]:
    """All sessions of one file, as `load_recording` reads them: those of subagents, and the one
    that goes on from another, whose lines the file begins with. Raises `TranscriptError`."""
    try:
        known = format_of(path)
    except OSError as error:
        raise TranscriptError(f"{path} cannot be read: {error.strerror or error}.") from error
    if known is None:
        raise TranscriptError(f"{path} holds no session of Pi, Claude Code or Codex.")
    if known.harness == pi.HARNESS:
        return [load_transcript(path, branches=branches)]
    found: dict[str, Transcript] = {}
    identities = Identities()
    with opened_lines(path) as lines:
        for each in exchanges(known.read(lines)):
            if isinstance(each, HistorySession):
                before = found.get(each.parent or "")
                given = [] if before is None else [*before.messages]
                found[each.id] = Transcript(path, each.id, each.cwd, given)
            else:
                _add(found[each.session], each, identities)
        for transcript in found.values():
            transcript.skipped = lines.tally.unreadable.total()
            transcript.lost = lines.tally.places
    return [*found.values()]


def _add(transcript: Transcript, exchange: Exchange, identities: Identities) -> None:
    """An exchange's messages, and the call that its answer was."""
    for record in exchange.before:
        _add_said(transcript, record.message, record.entry)
    answer = exchange.message()
    if answer is not None:
        identity = identities.of(exchange.answer[0])
        if transcript.messages and answer.get("model") != NO_MODEL:
            transcript.calls.append(_call(answer, len(transcript.messages), identity))
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


def _call(answer: Message, seen: int, identity: str) -> RecordedCall:
    provider, model, api = (str(answer.get(name) or "") for name in ("provider", "model", "api"))
    return RecordedCall(seen, int(answer.get("timestamp") or 0), provider, model, api, identity)


def _sealed(answer: Message) -> Message:
    """The answer with its reasoning sealed, as it was when it was sent."""
    # Seals are not read in, but they decide what a rebase may change.
    blocks: list[Any] = answer["content"]
    sealed = [
        {**block, "thinkingSignature": "sealed"} if block.get("type") == "thinking" else block
        for block in blocks
    ]
    return {**answer, "content": sealed}


# Finding files


SUFFIXES = (".jsonl", ".jsonl.gz")
"""What files are called in a folder, but for Codex's first ones. One that is named by itself may be
called anything."""


@dataclass(frozen=True, slots=True)
class UsualFolder:
    """Where an agent keeps its sessions, and how many files are there."""

    agent: str
    path: Path
    files: tuple[Path, ...]
    size: int
    """Bytes of all of them."""


def usual_folders() -> list[UsualFolder]:
    """The folders of the agents that are known, those that hold any files.

    The agents' own variables (`PI_CODING_AGENT_DIR`, `CLAUDE_CONFIG_DIR`, `CODEX_HOME`) name
    others.
    """
    home = Path.home()
    places = (
        ("Pi", _agent_folder("PI_CODING_AGENT_DIR", home / ".pi" / "agent") / "sessions"),
        ("Claude Code", _agent_folder("CLAUDE_CONFIG_DIR", home / ".claude") / "projects"),
        ("Codex", _agent_folder("CODEX_HOME", home / ".codex") / "sessions"),
    )
    found = []
    for agent, folder in places:
        files = tuple(history_files([folder])) if folder.is_dir() else ()
        if files:
            found.append(UsualFolder(agent, folder, files, sum(map(_size, files))))
    return found


def history_files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files among files and folders, those of a folder in order of their names, each once."""
    seen: set[str] = set()
    for path in paths:
        for file in _within(path) if path.is_dir() else [path]:
            # `Path.resolve` raises for a link that leads into a loop.
            resolved = os.path.realpath(file)
            if resolved not in seen:
                seen.add(resolved)
                yield file


def _within(folder: Path) -> list[Path]:
    return sorted(
        Path(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if name.endswith(SUFFIXES) or fnmatch(name, "rollout-*.json")
    )


def _agent_folder(variable: str, default: Path) -> Path:
    named = os.environ.get(variable)
    return Path(named).expanduser() if named else default


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


# Formats


LOOKED_AT = 200
"""Lines at the beginning that may tell the format."""


class Format(NamedTuple):
    """An agent's way of keeping its sessions."""

    harness: str
    recognises: Callable[[dict[str, Any]], bool]
    """Whether a line is one that only this agent writes."""
    read: Callable[[Lines], Iterator[Record]]


FORMATS = (
    Format(claude_code.HARNESS, claude_code.is_claude_code, claude_code.read_claude_code),
    Format(codex.HARNESS, codex.is_codex, codex.read_codex),
    Format(pi.HARNESS, pi.is_pi, pi.read_pi),
)


def format_of(path: Path) -> Format | None:
    """The format of a file, None where no line at its beginning shows one. Raises `OSError`."""
    with opened_lines(path) as lines:
        values = [line.value for line in islice(lines, LOOKED_AT)]
    for value in values:
        for known in FORMATS:
            if known.recognises(value):
                rest = [other for other in values if other is not value]
                is_others = known.harness == pi.HARNESS and rest and not any(map(pi.is_entry, rest))
                return None if is_others else known
    return None
