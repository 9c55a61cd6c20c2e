"""Files of histories: finding, recognising and reading them, and how far each was read in."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from foredeck.context.messages.shape import Message, time_of
from foredeck.errors import NotFound
from foredeck.model.documents import HistoryProgress, progress_in, session_object_id
from foredeck.model.records import call_id, forgotten_id
from foredeck.store.store import Store
from foredeck_agents.histories import claude_code, codex, pi
from foredeck_agents.histories.lines import Lines, Place, opened_lines
from foredeck_agents.histories.pi import load_transcript
from foredeck_agents.histories.records import (
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
from foredeck_agents.histories.tools import in_pis_tools

NO_MODEL = "<synthetic>"
"""Claude Code's model for answers that it wrote itself."""


def find_recordings(paths: Sequence[Path]) -> list[Path]:
    """The session files among files and folders, each once. Raises `TranscriptError` without
    any."""
    for path in paths:
        if not path.exists():
            raise NotFound(f"{path} does not exist.")
        if not any(history_files([path])):
            suffixes = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
            raise TranscriptError(f"{path} holds no recorded sessions ({suffixes}).")
    return list(history_files(paths))


def stem_of(path: Path) -> str:
    """A session file's name without its suffixes."""
    suffix = next((suffix for suffix in SUFFIXES if path.name.endswith(suffix)), path.suffix)
    return path.name.removesuffix(suffix)


def load_recording(path: Path, session: str | None = None, *, branches: bool = False) -> Transcript:
    """Reads one file of any known agent as a session of Pi.

    `session`: by default the file's first; the others are its subagents. Raises `TranscriptError`.
    """
    transcripts = load_recordings(path, branches=branches)
    for transcript in transcripts:
        if session in (None, transcript.id):
            return transcript
    which = "" if session is None else f" {session}"
    raise TranscriptError(f"{path} holds no session{which}.")


def load_recordings(path: Path, *, branches: bool = False) -> list[Transcript]:
    """All sessions of one file. Raises `TranscriptError`."""
    try:
        format = format_of(path)
    except OSError as error:
        raise TranscriptError(f"{path} cannot be read: {error.strerror or error}.") from error
    if format is None:
        raise TranscriptError(f"{path} holds no session of Pi, Claude Code or Codex.")
    if format.harness == pi.HARNESS:
        return [load_transcript(path, branches=branches)]
    transcripts: dict[str, Transcript] = {}
    identities = Identities()
    with opened_lines(path) as lines:
        for each in exchanges(format.read(lines)):
            if isinstance(each, HistorySession):
                before = transcripts.get(each.parent or "")
                messages = [] if before is None else [*before.messages]
                transcripts[each.id] = Transcript(path, each.id, each.cwd, messages)
            else:
                _add(transcripts[each.session], each, identities)
        for transcript in transcripts.values():
            transcript.skipped = lines.tally.unreadable.total()
            transcript.lost = lines.tally.places
    return [*transcripts.values()]


def _add(transcript: Transcript, exchange: Exchange, identities: Identities) -> None:
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
    # Seals are not read in, but they decide what a rebase may change.
    blocks: list[Any] = answer["content"]
    sealed = [
        {**block, "thinkingSignature": "sealed"} if block.get("type") == "thinking" else block
        for block in blocks
    ]
    return {**answer, "content": sealed}


# Finding files


SUFFIXES = (".jsonl", ".jsonl.gz")
"""Names of files in a folder; one named by itself may have any."""


@dataclass(frozen=True, slots=True)
class UsualFolder:
    """Where an agent keeps its sessions, and how many files are there."""

    agent: str
    path: Path
    files: tuple[Path, ...]
    size: int
    """Bytes of all of them."""


def usual_places() -> list[tuple[str, Path]]:
    """The known agents' session folders, below the home folder or by their variables."""
    home = Path.home()
    return [
        ("Pi", _agent_folder("PI_CODING_AGENT_DIR", home / ".pi" / "agent") / "sessions"),
        ("Claude Code", _agent_folder("CLAUDE_CONFIG_DIR", home / ".claude") / "projects"),
        ("Codex", _agent_folder("CODEX_HOME", home / ".codex") / "sessions"),
    ]


def usual_folders() -> list[UsualFolder]:
    folders = []
    for agent, folder in usual_places():
        files = tuple(history_files([folder])) if folder.is_dir() else ()
        if files:
            folders.append(UsualFolder(agent, folder, files, sum(map(_size, files))))
    return folders


def history_files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files among files and folders, each once."""
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
    folder = os.environ.get(variable)
    return Path(folder).expanduser() if folder else default


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


# Formats


LOOKED_AT = 200


class Format(NamedTuple):
    """An agent's way of keeping its sessions."""

    harness: str
    recognises: Callable[[dict[str, Any]], bool]
    """Whether a line is one of this agent alone."""
    read: Callable[[Lines], Iterator[Record]]


FORMATS = (
    Format(claude_code.HARNESS, claude_code.is_claude_code, claude_code.read_claude_code),
    Format(codex.HARNESS, codex.is_codex, codex.read_codex),
    Format(pi.HARNESS, pi.is_pi, pi.read_pi),
)


def format_of(path: Path) -> Format | None:
    """The format of a file, if its first lines show one. Raises `OSError`."""
    with opened_lines(path) as lines:
        values = [line.value for line in islice(lines, LOOKED_AT)]
    for value in values:
        for format in FORMATS:
            if format.recognises(value):
                rest = [other for other in values if other is not value]
                is_others = (
                    format.harness == pi.HARNESS and rest and not any(map(pi.is_entry, rest))
                )
                return None if is_others else format
    return None


FileState = tuple[int, int]
"""Size in bytes, and modification time in nanoseconds."""


def place_of(progress: HistoryProgress) -> Place:
    """The last line that is stored."""
    return Place(progress.line, progress.check)


def is_stored(progress: HistoryProgress, exchange: Exchange, number: int) -> bool:
    """Whether all of an exchange is stored."""
    return number <= progress.exchanges and exchange.last.line <= progress.line


def advance(progress: HistoryProgress, exchange: Exchange, number: int) -> None:
    fresh = exchange.records
    if number <= progress.exchanges:
        # The exchange was stored before, and has grown since.
        fresh = [record for record in fresh if record.place.line > progress.line]
    roles = Counter(record.role for record in fresh)
    progress.messages += len(fresh) - roles["assistant"] - roles["toolResult"]
    # An answer in several lines is one message, counted with its first ones.
    progress.messages += bool(exchange.answer) and roles["assistant"] == len(exchange.answer)
    progress.tool_calls += roles["toolResult"]
    progress.exchanges = max(number, progress.exchanges)
    progress.line, progress.check = max(place_of(progress), exchange.last)
    times = [ms for record in fresh if (ms := time_of(record.message))]
    if times:
        progress.first_ms = min(progress.first_ms or times[0], *times)
        progress.last_ms = max(progress.last_ms, *times)


@dataclass(frozen=True, slots=True)
class StoredState:
    """What the store has of a file's session."""

    kind: Literal["new", "read", "recorded", "forgotten"]
    """`recorded`: foredeck knows more than the file. `forgotten`: erased by the user."""
    progress: HistoryProgress | None = None


def stored_state(store: Store | None, session: str) -> StoredState:
    """What is stored of a session; without a store everything is new."""
    if store is None:
        return StoredState("new")
    heads = store.heads([session_object_id(session), call_id(session, 1), forgotten_id(session)])
    wrapper = heads.get(session_object_id(session))
    if wrapper is None:
        return StoredState("forgotten" if forgotten_id(session) in heads else "new")
    progress = progress_in(wrapper.fields)
    if progress is None or call_id(session, 1) in heads:
        return StoredState("recorded")
    return StoredState("read", progress)


def file_state(path: Path) -> FileState:
    """Size and modification time, which show an unchanged file."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns
