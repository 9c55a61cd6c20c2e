"""How far a session has been read in, as its own document says."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from foredeck.context.messages.shape import time_of
from foredeck.histories.lines import Place
from foredeck.model.documents import Fields, SessionDocument, session_object_id
from foredeck.model.records import call_id, forgotten_id
from foredeck.store.protocol import Store

if TYPE_CHECKING:  # to say how far a reading came takes none of it
    from foredeck.histories.records import Exchange

FileState = tuple[int, int]
"""Size in bytes, and time of modification in nanoseconds."""


class HistorySessionDocument(SessionDocument):
    """A session that was read from another agent's history."""

    # In the session's own document, which the same transaction stores: a reading that was killed
    # goes on where it ended, one that is repeated finds nothing new, and what is exported or
    # forgotten takes this along.

    ingested: dict[str, Any] = Field(default_factory=dict)
    """The fields of `HistoryProgress`."""


@dataclass(slots=True)
class HistoryProgress:
    """What of a session has been read in, and where that is in its file."""

    file: str
    exchanges: int = 0
    """How many of its exchanges are stored; each is a turn."""
    line: int = 0
    check: int = 0
    """The last line of them, and the CRC-32 of the file up to its end."""
    messages: int = 0
    tool_calls: int = 0
    first_ms: int = 0
    last_ms: int = 0
    """When the first and the last of them were written; 0 where they do not say."""
    complete: list[int] = field(default_factory=list)
    """The `FileState` of the file when it had been read to its end; empty before that."""

    @property
    def place(self) -> Place:
        """The last line that is stored."""
        return Place(self.line, self.check)

    def is_stored(self, exchange: Exchange, number: int) -> bool:
        """Whether all of an exchange is stored. `number`: its place in the session, from 1."""
        return number <= self.exchanges and exchange.last.line <= self.line

    def advance(self, exchange: Exchange, number: int) -> None:
        """Count in an exchange that is new, or has grown."""
        fresh = exchange.records
        if number <= self.exchanges:
            # The exchange was stored before, and has grown since.
            fresh = [record for record in fresh if record.place.line > self.line]
        roles = Counter(record.role for record in fresh)
        self.messages += len(fresh) - roles["assistant"] - roles["toolResult"]
        # An answer in several lines is one message, counted with its first ones.
        self.messages += bool(exchange.answer) and roles["assistant"] == len(exchange.answer)
        self.tool_calls += roles["toolResult"]
        self.exchanges = max(number, self.exchanges)
        self.line, self.check = max(self.place, exchange.last)
        times = [ms for record in fresh if (ms := time_of(record.message))]
        if times:
            self.first_ms = min(self.first_ms or times[0], *times)
            self.last_ms = max(self.last_ms, *times)

    def as_fields(self) -> dict[str, Any]:
        """As the session's document keeps it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class StoredState:
    """What the store has of a session that a file holds."""

    kind: Literal["new", "read", "recorded", "forgotten"]
    """`recorded`: foredeck was there, and knows more than the file. `forgotten`: the user has
    erased it."""
    progress: HistoryProgress | None = None


def stored_state(store: Store | None, session: str) -> StoredState:
    """What the store has of a session; without a store everything is new."""
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


def progress_in(fields: Fields) -> HistoryProgress | None:
    """What a session's document says of its reading; None for one that foredeck recorded."""
    stored = fields.get("ingested")
    return HistoryProgress(**stored) if isinstance(stored, dict) and stored else None


def file_state(path: Path) -> FileState:
    """Size and time of modification, by which a file is known to be unchanged."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns
