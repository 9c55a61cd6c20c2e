"""A project's tasks in memory, kept in step with the store, and what follows from them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

from pydantic import PrivateAttr

from foredeck.model.ids import TASK, ShortNames
from foredeck.model.quoting import one_line
from foredeck.model.tasks import TaskDocument
from foredeck.store.clock import DAY_MS
from foredeck.store.protocol import Head, Lineage, LocalStore, Token

SUMMARISED_MS, ARCHIVED_MS = 7 * DAY_MS, 30 * DAY_MS
"""How long a task is closed before its summary replaces its description, and before it is
shown by a line alone."""


class Task(TaskDocument):
    """A task as it was read from the store, but for its description, which is not loaded."""

    _token: Token = PrivateAttr()

    @property
    def token(self) -> Token:
        """Of the version that was read."""
        return self._token

    @property
    def is_closed(self) -> bool:
        """Whether nothing is left to do."""
        return self.status == "closed"

    @property
    def called(self) -> str:
        """Its title within a line of ours."""
        return one_line(self.title)

    @property
    def order(self) -> tuple[int, int, str]:
        """What `ready` sorts by: priority, then age."""
        return self.priority, self.created_ms, self.id

    def on(self, relation: str) -> list[str]:
        """The tasks that this one names with a relation."""
        return [d.on for d in self.dependencies if d.relation == relation]

    def is_held(self, now_ms: int) -> bool:
        """Whether a claim of it holds: no other may claim it."""
        return self.status == "in_progress" and (self.lease_ms is None or now_ms < self.lease_ms)

    def level(self, now_ms: int) -> int:
        """How far a closed task has decayed: 0 in full, 1 by its summary, 2 by one line."""
        if self.closed_ms is None or not self.is_closed:
            return 0
        age = now_ms - self.closed_ms
        return (age >= SUMMARISED_MS) + (age >= ARCHIVED_MS)


def task_of(head: Head) -> Task:
    """The task in a stored version."""
    task = Task.model_validate(dict(head.fields))
    task._token = head.token
    return task


_CHANGES_AT_ONCE = 1_000


class Board:
    """The tasks of one project. `refresh` takes in what has come since."""

    # Which tasks can be claimed is worked out when a task changes, not when that is asked: of ten
    # thousand tasks few change at a time.

    def __init__(self, store: LocalStore, project: str) -> None:
        self.project = project
        self.names = ShortNames(TASK)
        self._store = store
        self._tasks: dict[str, Task] = {}
        self._waiting: dict[str, set[str]] = {}
        """By task: those that wait for it."""
        self._children: dict[str, set[str]] = {}
        self._free: list[tuple[int, int, str]] = []
        """The open tasks that wait for nothing, in the order of `ready`."""
        self._blocked: set[str] = set()
        """Open tasks that wait for others."""
        self._in_progress: set[str] = set()
        self._position: Token | None = None
        self._lineage: Lineage | None = None

    # In step with the store

    def refresh(self) -> None:
        """Take in what was written since the last time, by whomever."""
        # Asks for nothing, but brings what other machines wrote into the local copy.
        self._store.query("task", {"project": self.project}, limit=0)
        lineage = self._store.lineage()
        # The first time, or another store is there now, such as one that was restored: its changes
        # do not continue those that are known.
        if self._lineage != lineage:
            self._load()
            self._lineage = lineage
            return
        ids: dict[str, None] = {}
        while changes := self._store.changes_since(self._position, limit=_CHANGES_AT_ONCE):
            ids.update((change.id, None) for change in changes if change.type == "task")
            self._position = changes[-1].token
        self._take(self._store.heads(ids).values())

    def _load(self) -> None:
        # The position first: what comes in between is read twice, and nothing is missed.
        self._position = self._store.latest()
        known = self._tasks, self._waiting, self._children
        for kept in (*known, self._free, self._blocked, self._in_progress):
            kept.clear()
        self.names = ShortNames(TASK)
        self._take(self._store.query("task", {"project": self.project}))

    def _take(self, heads: Iterable[Head]) -> None:
        touched: dict[str, None] = {}
        for head in heads:
            if head.fields.get("project") == self.project:
                touched |= self._put(task_of(head))
        for id in touched:
            self._place(id)

    def _put(self, task: Task) -> dict[str, None]:
        """Replace what was known of a task. Returns the tasks whose place may change by that."""
        before = self._tasks.get(task.id)
        touched = dict.fromkeys((task.id, *self._waiting.get(task.id, ())))
        if before is not None:
            self._unplace(before)
            for blocked, blocker in _waits(before):
                self._waiting.get(blocker, set()).discard(blocked)
                touched[blocked] = None
            for parent in before.on("parent-child"):
                self._children.get(parent, set()).discard(task.id)
        self._tasks[task.id] = task
        self.names.add(task.id)
        for blocked, blocker in _waits(task):
            self._waiting.setdefault(blocker, set()).add(blocked)
            touched[blocked] = None
        for parent in task.on("parent-child"):
            self._children.setdefault(parent, set()).add(task.id)
        return touched

    def _unplace(self, task: Task) -> None:
        at = bisect_left(self._free, task.order)
        if at < len(self._free) and self._free[at] == task.order:
            del self._free[at]
        self._blocked.discard(task.id)
        self._in_progress.discard(task.id)

    def _place(self, id: str) -> None:
        task = self._tasks.get(id)
        if task is None:
            return
        self._unplace(task)
        if task.status == "in_progress":
            self._in_progress.add(id)
        elif task.status == "open":
            if self._is_blocked(task):
                self._blocked.add(id)
            else:
                insort(self._free, task.order)

    # Questions

    def known_name(self, id: str) -> str:
        """What a task is called, with the tasks read if they were not yet."""
        if self._lineage is None:
            self.refresh()
        return self.names.name(id)

    def get(self, id: str) -> Task | None:
        """A task by its id."""
        return self._tasks.get(id)

    def all(self) -> list[Task]:
        """All tasks, by priority, then age."""
        return sorted(self._tasks.values(), key=lambda task: task.order)

    def ready(self, limit: int, now_ms: int) -> list[Task]:
        """The tasks that can be claimed, by priority, then age; `limit` of them. Those whose claim
        has ended are among them."""
        lapsed = sorted(task.order for task in self._lapsed(now_ms))
        orders = sorted([*self._free[:limit], *lapsed[:limit]])
        return [self._tasks[id] for _, _, id in orders[:limit]]

    def counts(self, now_ms: int) -> tuple[int, int]:
        """How many tasks can be claimed, and how many open ones wait for others."""
        return len(self._free) + len(list(self._lapsed(now_ms))), len(self._blocked)

    def in_progress(self) -> list[Task]:
        """The claimed tasks, by priority, then age."""
        return sorted((self._tasks[id] for id in self._in_progress), key=lambda task: task.order)

    def children(self, id: str) -> list[Task]:
        """The parts of a task, by priority, then age."""
        return self._sorted(self._children.get(id, ()))

    def open_blockers(self, task: Task) -> Iterator[Task]:
        """Those of `waits_for` that are not closed yet."""
        for id in self.waits_for(task.id):
            blocker = self._tasks.get(id)
            if blocker is not None and not blocker.is_closed:
                yield blocker

    def blocked_by(self, id: str) -> list[Task]:
        """The tasks that name this one as what blocks them."""
        named = self._waiting.get(id, ())
        return [t for t in self._sorted(named) if id in t.on("blocks") and not t.is_closed]

    def referring(self, id: str, relation: str) -> list[Task]:
        """The tasks that name this one with a relation."""
        return [t for t in self.all() if id in t.on(relation)]

    def waits_for(self, id: str) -> list[str]:
        """What must be closed before a task is begun, closed ones too: what blocks it, and its own
        parts, in a fixed order."""
        task = self._tasks.get(id)
        if task is None:
            return []
        return [*task.on("blocks"), *sorted(self._children.get(id, ()))]

    def _is_blocked(self, task: Task) -> bool:
        return next(self.open_blockers(task), None) is not None

    def _lapsed(self, now_ms: int) -> Iterator[Task]:
        for id in self._in_progress:
            task = self._tasks[id]
            if not task.is_held(now_ms) and not self._is_blocked(task):
                yield task

    def _sorted(self, ids: Iterable[str]) -> list[Task]:
        known = (self._tasks[id] for id in ids if id in self._tasks)
        return sorted(known, key=lambda task: task.order)


def _waits(task: Task) -> Iterator[tuple[str, str]]:
    """Pairs of the task that waits and the one it waits for: an epic waits for its parts."""
    for dependency in task.dependencies:
        if dependency.relation == "blocks":
            yield task.id, dependency.on
        elif dependency.relation == "parent-child":
            yield dependency.on, task.id


def cycle(board: Board, waiting: str, on: str) -> list[str] | None:
    """The way from `on` back to `waiting`, if there is one: what `waiting` waiting for `on` would
    make a circle, none of which could begin. Begins and ends with `waiting`."""
    if waiting == on:
        return [waiting, waiting]
    came_from: dict[str, str] = {on: waiting}
    pending = [on]
    while pending:
        here = pending.pop()
        for there in board.waits_for(here):
            if there == waiting:
                path = [waiting]
                while here != waiting:
                    path.append(here)
                    here = came_from[here]
                return [waiting, *reversed(path)]
            if there not in came_from:
                came_from[there] = here
                pending.append(there)
    return None
