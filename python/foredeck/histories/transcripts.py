"""A recorded session of any agent, to be replayed: its messages, and the calls that saw them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from foredeck.context.messages.shape import Message
from foredeck.errors import ForedeckError


class TranscriptError(ForedeckError):
    """A file that is not a recorded session, or not to be read."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class RecordedMessage:
    """One message on the branch, and the id of its entry where it has one."""

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
