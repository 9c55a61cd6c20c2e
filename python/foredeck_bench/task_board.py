"""How long it takes to say what can be begun, in a project with many tasks."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from foredeck.model.documents import Provenance
from foredeck.model.ids import uuid7
from foredeck.model.tasks import TaskDependency, TaskDocument
from foredeck.store.protocol import Batch
from foredeck.store.sqlite.adapter import open_sqlite
from foredeck.tasks.claiming import Actor
from foredeck.tasks.tools import session_tasks
from foredeck.tasks.work import TaskWork
from foredeck_bench.figures import quantile

_AT_ONCE = 1_000
_TIMES = 50
_START_MS = 1_777_777_200_000


def board_figures(count: int) -> dict[str, Any]:
    """Milliseconds, in a project of `count` tasks of which every second waits for another: reading
    all of them once; `ready` by the model's tool with nothing new, and after a change of one."""
    with (
        tempfile.TemporaryDirectory(prefix="foredeck-tasks-") as name,
        closing(open_sqlite(Path(name) / "tasks.db")) as store,
    ):
        tasks = _tasks(count)
        for start in range(0, count, _AT_ONCE):
            store.commit(Batch(puts=[*tasks[start : start + _AT_ONCE]]))
        session = session_tasks(TaskWork(store, "project", Actor("bench")), "bench")
        ready = {"action": "ready"}
        loaded = _milliseconds(lambda: session.query.run(ready))
        again = [_milliseconds(lambda: session.query.run(ready)) for _ in range(_TIMES)]
        changed = []
        for number in range(_TIMES):
            session.work.update(tasks[2 * number % count].id, {"priority": number % 5})
            changed.append(_milliseconds(lambda: session.query.run(ready)))
    return {
        "tasks": count,
        "load_ms": round(loaded, 1),
        "ready_ms": [round(quantile(again, q), 2) for q in (0.5, 0.95)],
        "ready_after_a_change_ms": [round(quantile(changed, q), 2) for q in (0.5, 0.95)],
    }


def _tasks(count: int) -> list[TaskDocument]:
    made: list[TaskDocument] = []
    for number in range(count):
        waits = [TaskDependency(on=made[-1].id)] if number % 2 else []
        task = TaskDocument(
            id=uuid7(_START_MS + number),
            project="project",
            title=f"Task number {number} of a large project",
            content="What it is about, in a sentence or two.",
            priority=number % 5,
            dependencies=waits,
            created_ms=_START_MS + number,
            updated_ms=_START_MS + number,
            provenance=Provenance(origin="bench", generator="agent"),
        )
        made.append(task.seal())
    return made


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000
