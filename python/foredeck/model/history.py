"""Sessions that were read from another agent's history."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import Field

from foredeck.model.documents import Fields, SessionDocument


class HistorySessionDocument(SessionDocument):
    # In the session's own document, which the same transaction stores: a reading that was killed
    # goes on where it ended, one that is repeated finds nothing new, and what is exported or
    # forgotten takes this along.

    ingested: dict[str, Any] = Field(default_factory=dict)
    """The fields of `HistoryProgress`."""


@dataclass(slots=True)
class HistoryProgress:
    """How far a session was read, and where that is in its file."""

    file: str
    exchanges: int = 0
    """Exchanges stored so far, each a turn."""
    line: int = 0
    check: int = 0
    """The last line of them, and the CRC-32 of the file up to its end."""
    messages: int = 0
    tool_calls: int = 0
    first_ms: int = 0
    last_ms: int = 0
    complete: list[int] = field(default_factory=list)
    """Size and modification time in nanoseconds of the file when it was read to its end; else
    empty."""

    def as_fields(self) -> dict[str, Any]:
        """As the session's document keeps it."""
        return asdict(self)


def progress_in(fields: Fields) -> HistoryProgress | None:
    """How far a session was read; None for one that foredeck recorded."""
    stored = fields.get("ingested")
    return HistoryProgress(**stored) if isinstance(stored, dict) and stored else None
