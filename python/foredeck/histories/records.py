"""What the readers of all formats yield: sessions, and messages in the stored shape
(`context/messages/shape.py`). Tools keep the names that their agent has."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from foredeck.context.messages.items import Block, text_block
from foredeck.context.messages.shape import Message
from foredeck.histories.lines import Place, finite, is_deep
from foredeck.model.canonical import encode_text
from foredeck.model.messages import is_digest

MAX_CALL_ID = 200
"""Characters of a tool call's id; a longer one is replaced by its hash."""
MAX_OTHER_BLOCK = 10_000
"""Characters. A larger block of a kind that is not known is named and left out."""
_SESSION_ID = re.compile(r"[A-Za-z0-9][\w.\-]{0,199}", re.ASCII)
_OURS = re.compile(
    r"(session|chat|system_prompt|turn|member|call|nickname|compaction|forgotten|archived"
    r"|calibration|seals):"
)


@dataclass(frozen=True, slots=True)
class HistorySession:
    """A session of which messages follow."""

    id: str
    harness: str
    """`claude-code`, `codex` or `pi`."""
    cwd: str = ""
    parent: str | None = None
    """Session that this one was forked from."""
    started_by: str | None = None
    """Session whose agent started this one: a subagent's link to its parent."""


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """One message, or a part of an answer that its agent wrote in several lines."""

    session: str
    place: Place
    size: int
    """Bytes of its line."""
    message: Message
    entry: str | None = None
    """The agent's own id of the line."""
    group: str | None = None
    """Of an answer: parts with the same name belong to one answer; None for a whole one."""
    file_before: str | None = None
    """Of the result of an edit: the file's text before, where the history has it."""

    @property
    def role(self) -> str:
        """The message's role."""
        return str(self.message.get("role") or "")


Record = HistorySession | HistoryMessage


def other_block(block: Any) -> Block:
    """A block of a kind that is not known, as text: its JSON, unless that is large."""
    text = json.dumps(block, ensure_ascii=False)
    if len(text) <= MAX_OTHER_BLOCK:
        return text_block(text)
    kind = block.get("type") if isinstance(block, dict) else type(block).__name__
    return text_block(f"({kind}: {len(text):,} characters, left out)")


def milliseconds(stamp: Any) -> int:
    """A time stamp in milliseconds since 1970; 0 where it is none."""
    if isinstance(stamp, str):
        try:
            return max(0, int(datetime.fromisoformat(stamp).timestamp() * 1000))
        except (ValueError, OverflowError):
            return 0
    is_number = isinstance(stamp, int | float) and not isinstance(stamp, bool)
    return int(stamp) if is_number and 0 <= stamp < 1e15 else 0


def session_id(value: Any) -> str | None:
    """A session's id, None for what cannot be one: it becomes part of stored ids."""
    return value if isinstance(value, str) and _SESSION_ID.fullmatch(value) else None


def tool_call_id(value: Any, session: str, place: Place) -> str:
    """A tool call's id, which becomes that of an object: made up where there is none, replaced
    where it could be taken for the id of something else."""
    if not isinstance(value, str) or not value:
        return f"call-{session}-{place.line}"
    if len(value) > MAX_CALL_ID or _OURS.match(value) or is_digest(value):
        return f"call-{hashlib.sha256(encode_text(value)).hexdigest()[:32]}"
    return value


def folder(value: Any) -> str:
    """A working folder, if it is an absolute path without detours; else empty."""
    if not isinstance(value, str) or len(value) > 4096 or "\0" in value:
        return ""
    is_absolute = value.startswith("/") or re.match(r"[A-Za-z]:[\\/]|\\\\", value)
    return value if is_absolute and ".." not in re.split(r"[\\/]", value) else ""


def arguments_of(value: Any) -> dict[str, Any]:
    """A tool call's arguments, given as an object or as its JSON text; other text as `input`."""
    if isinstance(value, str):
        try:
            parsed = json.loads(value, parse_constant=str, parse_float=finite)
        except (ValueError, RecursionError):
            parsed = None
        is_sound = isinstance(parsed, dict) and not is_deep(parsed, value.count("{"))
        value = parsed if is_sound else {"input": value}
    return value if isinstance(value, dict) else {}
