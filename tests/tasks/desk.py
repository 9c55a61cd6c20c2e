"""A project's tasks with a clock that stands still until it is moved, and ids that repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from foredeck.errors import ToolError
from foredeck.store.store import Store, open_sqlite
from foredeck.tasks.board import Actor
from foredeck.tasks.session import SessionTasks
from foredeck.tasks.work import TaskWork

START_MS = 1_777_777_200_000
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
FIRST, SECOND = "019aa000-first", "019bb000-second"


class Clock:
    """Milliseconds since 1970."""

    def __init__(self) -> None:
        self.now = START_MS

    def __call__(self) -> int:
        self.now += 1
        return self.now


class Desk:
    """Two sessions on one project, over one SQLite file."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.stores: list[Store] = [open_sqlite(folder / "tasks.db") for _ in range(2)]
        self.first, self.second = (
            SessionTasks(TaskWork(store, "project", Actor(session), self.clock), session)
            for store, session in zip(self.stores, (FIRST, SECOND), strict=True)
        )

    def create(self, title: str, **fields: Any) -> str:
        """A new task by the first session; its name."""
        text = self.first.mutate.run({"action": "create", "title": title, **fields})
        return text.split()[1]

    def close(self) -> None:
        """Let go of the stores."""
        for store in self.stores:
            store.close()


def said(run: Callable[[dict[str, Any]], str], **input: Any) -> str:
    """What a tool answers, refusals too."""
    try:
        return run(input)
    except ToolError as error:
        return f"ERROR {error}"


@contextmanager
def repeatable_ids() -> Iterator[None]:
    """Ids that count up, in the letters that name them too."""
    count = iter(range(1, 10_000))

    def uuid7(now_ms: int) -> str:
        number = next(count)
        letters = sum((number * 7 + place * 11) % 32 << 5 * place for place in range(12))
        text = f"{now_ms:012x}7{number:03x}8{0:03x}{letters & 0xFFFFFFFFFFFF:012x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    with patch("foredeck.model.identity.uuid7", uuid7):
        yield


__all__ = ("DAY_MS", "FIRST", "HOUR_MS", "SECOND", "Desk", "SessionTasks", "repeatable_ids", "said")
