"""Tasks and entries of memory, which have no handle, as the model reads them by their names."""

from __future__ import annotations

import re

from foredeck.memory.entry import MemoryEntry
from foredeck.memory.sections import lines_of
from foredeck.memory.session import SessionMemory
from foredeck.model.ids import ENTRY, TASK, ShortNames
from foredeck.model.tasks import TaskDocument
from foredeck.store.clock import now_ms
from foredeck.store.protocol import Store
from foredeck.tasks.board import Board
from foredeck.tasks.wording import details

_NAME = re.compile(r"(?:[tm]-[0-9a-z]{4,}|memory:\S+|[0-9a-f]{8}-[0-9a-f-]{27})", re.IGNORECASE)


def read_record(store: Store, memory: SessionMemory | None, name: str) -> str | None:
    """What a task or an entry of memory says, for the model; None where `name` is neither, or of
    memory that may not be shown in this session."""
    # A session's index does not hold them: they are found by their names.
    if _NAME.fullmatch(name) is None:
        return None
    if not name.lower().startswith("m"):
        return _task(store, name)
    shown = {} if memory is None else {entry.id: entry for entry in memory.entries()}
    found = ShortNames(ENTRY, shown).find(name)
    return "\n".join(_described(shown[id]) for id in found) or None


def _described(entry: MemoryEntry) -> str:
    turn = (entry.document.turn or "").rpartition(":")
    where = f"\n  said in chat:{turn[0].partition(':')[2]} message {turn[2]}" if turn[0] else ""
    return lines_of(entry)[-1].removeprefix("- ") + where


def _task(store: Store, name: str) -> str | None:
    heads = {head.id: head for head in store.query("task")}
    found, local = ShortNames(TASK, heads).find(name), store.local
    if len(found) != 1 or local is None:
        return None
    id = found[0]
    board = Board(local, heads[id].view(TaskDocument).project)
    board.refresh()
    task, document = board.get(id), store.get(id, TaskDocument)
    if task is None or document is None:
        return None
    return details(board, task, document.content, now_ms(), full=True)
