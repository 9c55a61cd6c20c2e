"""Recorded sessions of every known agent, as ones of Pi: what a replay and its judge are given.

Tools get the names and arguments that Pi's have, so that reads and edits count as
such. Of a file that holds a session and its subagents one session is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from foredeck.histories import pi
from foredeck.histories.exchanges import Exchange, exchanges
from foredeck.histories.finding import SUFFIXES, history_files
from foredeck.histories.formats import Format, format_of
from foredeck.histories.lines import opened_lines
from foredeck.histories.records import Block, HistorySession, Message
from foredeck.hosts.pi.transcripts import (
    Compaction,
    RecordedCall,
    RecordedMessage,
    Transcript,
    TranscriptError,
    load_transcript,
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


# Tool calls of other agents by the names and arguments of Pi's tools, and results as Pi has them.
#
# Tools that Pi does not have stay as they are.

Arguments = dict[str, Any]

_LINE_NUMBER = re.compile(r"^ *\d+(?:→|\t)", re.MULTILINE)
_OPENCODE_FILE = re.compile(
    r"<path>[^\n]*</path>\n<type>file</type>\n<content>\n(.*?)\n\n\(End of file[^\n]*\n</content>",
    re.DOTALL,
)
_OPENCODE_LINE_NUMBER = re.compile(r"^\d+: ", re.MULTILINE)
_NAMES = {
    "file_path": "path",
    "filePath": "path",
    "old_string": "oldText",
    "oldString": "oldText",
    "new_string": "newText",
    "newString": "newText",
    "cmd": "command",
}
_SHELLS = frozenset({"bash", "sh", "zsh"})


def in_pis_tools(message: Message) -> Message:
    """The message of an agent's history as Pi would have it; the same one where nothing differs."""
    match message.get("role"):
        case "assistant":
            return {**message, "content": [_block(block) for block in message["content"]]}
        case "toolResult":
            return _result(message)
        case _:
            return message


def in_their_tools(block: Block, theirs: Block) -> Block:
    """A tool call by the names and arguments of Pi's tools, some of which were changed, as its
    agent has it. `theirs`: the same call as it came from that agent."""
    if theirs["name"] not in _TOOLS:
        changed = block["arguments"]
        return {**theirs, "arguments": {n: changed[n] for n in theirs["arguments"] if n in changed}}
    arguments = _back(theirs["arguments"], block["arguments"])
    return {**theirs, "arguments": arguments}


def _back(theirs: Any, changed: Any) -> Any:
    if isinstance(theirs, dict) and isinstance(changed, dict):
        return {
            name: _back(value, changed[_NAMES.get(name, name)])
            for name, value in theirs.items()
            if _NAMES.get(name, name) in changed
        }
    if isinstance(theirs, list) and isinstance(changed, list) and len(theirs) == len(changed):
        return [_back(one, other) for one, other in zip(theirs, changed, strict=True)]
    if isinstance(theirs, list) and isinstance(changed, str):  # a shell's words
        is_script = len(theirs) == 3 and changed != " ".join(map(str, theirs))
        return [*theirs[:2], changed] if is_script else theirs
    return changed


def _block(block: Block) -> Block:
    if block.get("type") != "toolCall" or block["name"] not in _TOOLS:
        return block
    name, rewritten = _TOOLS[block["name"]]
    return {**block, "name": name, "arguments": rewritten(block["arguments"])}


def _result(message: Message) -> Message:
    if message["toolName"] not in _TOOLS:
        return message
    name, _ = _TOOLS[message["toolName"]]
    if name != "read":
        return {**message, "toolName": name}
    as_file = _unwrapped_file if message["toolName"] == "read" else _unnumbered
    return {**message, "toolName": name, "content": [*map(as_file, message["content"])]}


def _unwrapped_file(block: Block) -> Block:
    """The lines of a file as opencode shows it."""
    text = block.get("text")
    whole = _OPENCODE_FILE.match(text) if isinstance(text, str) else None
    if whole is None:
        return block
    return {**block, "text": _OPENCODE_LINE_NUMBER.sub("", whole[1]) + "\n"}


def _unnumbered(block: Block) -> Block:
    """The lines of a file without the numbers that other agents put before them."""
    text = block.get("text")
    if not isinstance(text, str) or not _LINE_NUMBER.match(text):
        return block
    return {**block, "text": _LINE_NUMBER.sub("", text)}


def _renamed(arguments: Arguments) -> Arguments:
    return {_NAMES.get(name, name): value for name, value in arguments.items()}


def _edits(arguments: Arguments) -> Arguments:
    """Several edits of one file."""
    edits = arguments.get("edits")
    listed = edits if isinstance(edits, list) else []
    renamed = [_renamed(edit) if isinstance(edit, dict) else edit for edit in listed]
    return {**_renamed(arguments), "edits": renamed}


def _shell(arguments: Arguments) -> Arguments:
    """A command that is given as a list of words, most often `bash -lc COMMAND`."""
    words = arguments.get("command")
    if not isinstance(words, list):
        return _renamed(arguments)
    script = len(words) == 3 and str(words[0]).rpartition("/")[2] in _SHELLS
    return {**arguments, "command": words[2] if script else " ".join(map(str, words))}


_TOOLS: dict[str, tuple[str, Callable[[Arguments], Arguments]]] = {
    "Bash": ("bash", _renamed),
    "Read": ("read", _renamed),
    "Edit": ("edit", _renamed),
    "MultiEdit": ("edit", _edits),
    "Write": ("write", _renamed),
    "Grep": ("grep", _renamed),
    "Glob": ("find", _renamed),
    "LS": ("ls", _renamed),
    "exec_command": ("bash", _renamed),
    "shell": ("bash", _shell),
    "shell_command": ("bash", _shell),
    "local_shell": ("bash", _shell),
    # opencode's, which have the names of Pi's.
    "read": ("read", _renamed),
    "edit": ("edit", _renamed),
    "write": ("write", _renamed),
    "glob": ("find", _renamed),
    "list": ("ls", _renamed),
}
"""By the other agent's name: Pi's, and how its arguments become Pi's."""
