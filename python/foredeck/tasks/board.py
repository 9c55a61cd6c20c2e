"""A project's tasks in memory, kept in step with the store, and what follows from them; who may
claim one, and for how long."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pydantic import PrivateAttr

from foredeck.errors import ToolError
from foredeck.model.documents import Provenance
from foredeck.model.figures import some_of
from foredeck.model.ids import TASK, ShortNames
from foredeck.model.quoting import one_line
from foredeck.model.tasks import ClaimDocument, ClaimState, TaskDocument, claim_id
from foredeck.store.clock import DAY_MS, HOUR_MS
from foredeck.store.protocol import Batch, Head, Lineage, LocalStore, Store, Token

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
        """Whether anybody's claim of it holds: one that has no end, or has not come to it."""
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


# Claims
#
# A claim by a session is a lease: it ends when the session does, or after two hours in which the
# session did nothing. A claim by a person holds until it is released. A task that still waits for
# others, or is closed, cannot be claimed.


LEASE_MS = 2 * HOUR_MS
_SHORT = 8
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does something to a task. `session`: the agent's, or the one that a person sits at;
    None on the command line. `name`: the person's, None for an agent."""

    session: str | None
    name: str | None = None

    @property
    def generator(self) -> Literal["agent", "human"]:
        """For the provenance of what this one writes."""
        return "agent" if self.name is None else "human"

    @property
    def origin(self) -> str:
        """As `generator`."""
        return self.session or self.name or "foredeck"

    @property
    def assignee(self) -> str:
        """Who works on what this one claims."""
        return self.session or self.name or "somebody"

    def lease_ms(self, now_ms: int) -> int | None:
        """Until when a claim holds that is made now."""
        # A session may end without a word, a person comes back: theirs holds until it is released.
        return None if self.session is None else now_ms + LEASE_MS


def is_own(task: Task, actor: Actor) -> bool:
    """Whether the claim of a task, held or ended, is this one's."""
    return task.status == "in_progress" and task.assignee == actor.assignee


def holds(task: Task, actor: Actor, now_ms: int) -> bool:
    """Whether this one's claim of the task holds (`Task.is_held`): no other may claim it."""
    return is_own(task, actor) and task.is_held(now_ms)


def held_by_another(task: Task, actor: Actor, now_ms: int) -> ToolError | None:
    """What to say where another's claim of a task holds; None where none does."""
    if is_own(task, actor) or not task.is_held(now_ms):
        return None
    return ToolError(
        f"Already claimed by {holder(task)}{until_of(task)}.",
        "The action ready lists others.",
        "`{} list` shows others.",
    )


def refusal(board: Board, task: Task, actor: Actor, now_ms: int) -> ToolError | None:
    """Why a task cannot be claimed, and what to do instead; None where it can."""
    name = board.names.name(task.id)
    if task.is_closed:
        reason = f" ({task.close_reason})" if task.close_reason else ""
        return ToolError(
            f"{name} is closed{reason}.",
            'To work on it again, update it with status "open" first.',
            "To reopen it: `{} open TASK`.",
        )
    if is_own(task, actor):
        # Also after its claim has ended: the task stays in progress, and its session may go on
        # with it until another claims it.
        return None
    if held := held_by_another(task, actor, now_ms):
        return held
    if blockers := list(board.open_blockers(task)):
        named = [f"{board.names.name(t.id)} {t.called}" for t in blockers]
        some = some_of(named, _MOST_NAMED, "; ")
        return ToolError(f"Task is blocked by open dependencies: {some}. Do these first.")
    return None


def holder(task: Task) -> str:
    """Who has claimed a task, in words."""
    if task.session is not None:
        return f"session {short(task.session)}"
    return one_line(task.assignee or "somebody")


def short(session: str) -> str:
    """A session's id as a line shows it: the start of it, which the command line takes."""
    return session[:_SHORT]


def until_of(task: Task) -> str:
    """Until when a claim holds, as the end of a line; empty where there is none."""
    return "" if task.lease_ms is None else f" until {moment(task.lease_ms)}"


def moment(time_ms: int) -> str:
    """A time to the minute: `2026-05-03 14:05 UTC`."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


# Claims that are made while the database which decides them is away.
#
# Such a claim does not touch the task: it is a note of the session's own, on this machine. Once the
# database answers, the task is claimed as any other is, and the first has it. So no version that
# comes late can take a task from its owner.


def pending_claim(store: Store, session: str) -> str | None:
    """The task that a session has claimed provisionally."""
    head = store.head(claim_id(session))
    if head is None or head.view(ClaimDocument).state != "pending":
        return None
    return head.view(ClaimDocument).task


def note_claim(store: Store, session: str, task: str, state: ClaimState, time_ms: int) -> None:
    """Record that a session's claim of `task` is `pending`, or what became of it."""
    claim = ClaimDocument(
        id=claim_id(session),
        session=session,
        task=task,
        state=state,
        time_ms=time_ms,
        provenance=Provenance(origin=session, generator="agent"),
    )
    store.commit(Batch(puts=[claim.seal()]))
