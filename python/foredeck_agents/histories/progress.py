"""How far a session has been read in."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from foredeck.context.messages.shape import time_of
from foredeck.model.documents import HistoryProgress, progress_in, session_object_id
from foredeck.model.records import call_id, forgotten_id
from foredeck.store.store import Store
from foredeck_agents.histories.lines import Place
from foredeck_agents.histories.records import Exchange

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
