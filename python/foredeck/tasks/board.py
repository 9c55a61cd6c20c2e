"""A project's tasks in memory, and what follows from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from foredeck.errors import ToolError
from foredeck.model.documents import Provenance
from foredeck.model.figures import some_of
from foredeck.model.identity import TASK, ShortNames
from foredeck.model.quoting import one_line
from foredeck.model.tasks import ClaimDocument, ClaimState, TaskDocument, claim_id
from foredeck.store.clock import DAY_MS, HOUR_MS
from foredeck.store.protocol import Batch, Head, Lineage, Token
from foredeck.store.store import Store

SUMMARISED_MS, ARCHIVED_MS = 7 * DAY_MS, 30 * DAY_MS
"""Ages at which a closed task shrinks to its summary, and to a line."""


class Task(TaskDocument):
    """A stored task without its description."""

    token: Token
    """Of the version read."""

    @property
    def is_closed(self) -> bool:
        return self.status == "closed"

    @property
    def called(self) -> str:
        """Its title within a line."""
        return one_line(self.title)

    @property
    def order(self) -> tuple[int, int, str]:
        """Sort key of `ready`: priority, then age."""
        return self.priority, self.created_ms, self.id

    def on(self, relation: str) -> list[str]:
        return list(dict.fromkeys(d.on for d in self.dependencies if d.relation == relation))

    def is_held(self, now_ms: int) -> bool:
        """Whether a claim of it holds: unlimited or not expired."""
        return self.status == "in_progress" and (self.lease_ms is None or now_ms < self.lease_ms)

    def level(self, now_ms: int) -> int:
        if self.closed_ms is None or not self.is_closed:
            return 0
        age = now_ms - self.closed_ms
        return (age >= SUMMARISED_MS) + (age >= ARCHIVED_MS)


def task_of(head: Head) -> Task:
    return Task.model_validate({**head.fields, "token": head.token})


_CHANGES_AT_ONCE = 1_000


class Board:
    """The tasks of one project; `refresh` takes in news."""

    def __init__(self, store: Store, project: str) -> None:
        self.project = project
        self.names = ShortNames(TASK)
        self._store = store
        self._tasks: dict[str, Task] = {}
        self._ordered: list[Task] = []
        """All of them, by priority, then age."""
        self._referring: dict[tuple[str, str], list[Task]] = {}
        self._waiting: set[str] = set()
        self._free: list[Task] = []
        self._blocked = 0
        """How many open ones wait for others."""
        self._claimed: list[Task] = []
        """Those in progress, in the same order."""
        self._position: Token | None = None
        self._lineage: Lineage | None = None

    # In step with the store

    def refresh(self) -> None:
        # Asks for nothing, but brings what other machines wrote into the local copy.
        self._store.query("task", {"project": self.project}, limit=0)
        lineage = self._store.lineage()
        # The first time, or another store is there now, such as one that was restored: its changes
        # do not continue those that are known.
        if self._lineage != lineage:
            # The position first: what comes in between is read twice, and nothing is missed.
            self._position = self._store.latest()
            self._tasks, self.names = {}, ShortNames(TASK)
            self._take(self._store.query("task", {"project": self.project}))
            self._lineage = lineage
            return
        ids: dict[str, None] = {}
        while changes := self._store.changes_since(self._position, limit=_CHANGES_AT_ONCE):
            ids.update((change.id, None) for change in changes if change.type == "task")
            self._position = changes[-1].token
        if ids:
            self._take(self._store.heads(ids).values())

    def _take(self, heads: Iterable[Head]) -> None:
        own = [head for head in heads if head.fields.get("project") == self.project]
        if not own and self._tasks:
            return  # a task of another project
        for head in own:
            self._tasks[head.id] = task_of(head)
            self.names.add(head.id)
        tasks = self._tasks
        self._ordered = sorted(tasks.values(), key=lambda task: task.order)
        self._referring, self._waiting = defaultdict(list), set()
        # Once for each change, and not with each question: questions come far more often.
        for task in self._ordered:
            for on, relation in dict.fromkeys((d.on, d.relation) for d in task.dependencies):
                self._referring[on, relation].append(task)
                if relation == "blocks" and on in tasks and not tasks[on].is_closed:
                    self._waiting.add(task.id)
                elif relation == "parent-child" and not task.is_closed:
                    self._waiting.add(on)
        waiting = [task for task in self._ordered if task.status == "open"]
        self._free = [task for task in waiting if task.id not in self._waiting]
        self._blocked = len(waiting) - len(self._free)
        self._claimed = [task for task in self._ordered if task.status == "in_progress"]

    # Questions

    def known_name(self, id: str) -> str:
        if self._lineage is None:
            self.refresh()
        return self.names.name(id)

    def get(self, id: str) -> Task | None:
        return self._tasks.get(id)

    def all(self) -> list[Task]:
        """All tasks, by priority, then age."""
        return list(self._ordered)

    def ready(self, limit: int, now_ms: int) -> list[Task]:
        """The first claimable tasks, by priority, then age; expired claims included."""
        claimable = [*self._free[:limit], *self._lapsed(now_ms)]
        return sorted(claimable, key=lambda task: task.order)[:limit]

    def counts(self, now_ms: int) -> tuple[int, int]:
        """Number of claimable tasks, and of blocked open ones."""
        return len(self._free) + len(self._lapsed(now_ms)), self._blocked

    def in_progress(self) -> list[Task]:
        """The claimed tasks, by priority, then age."""
        return list(self._claimed)

    def referring(self, id: str, relation: str) -> list[Task]:
        """Tasks that name this one with a relation, by priority, then age."""
        return list(self._referring.get((id, relation), ()))

    def children(self, id: str) -> list[Task]:
        return self.referring(id, "parent-child")

    def blocked_by(self, id: str) -> list[Task]:
        """Open tasks that this one blocks."""
        return [task for task in self.referring(id, "blocks") if not task.is_closed]

    def waits_for(self, id: str) -> list[str]:
        """What must be closed first: blockers and parts, closed ones included."""
        task = self._tasks.get(id)
        parts = sorted(part.id for part in self.children(id))
        return [] if task is None else [*dict.fromkeys([*task.on("blocks"), *parts])]

    def open_blockers(self, task: Task) -> Iterator[Task]:
        """Open tasks of `waits_for`."""
        for id in self.waits_for(task.id):
            blocker = self._tasks.get(id)
            if blocker is not None and not blocker.is_closed:
                yield blocker

    def _lapsed(self, now_ms: int) -> list[Task]:
        ended = (task for task in self._claimed if not task.is_held(now_ms))
        return [task for task in ended if task.id not in self._waiting]


def cycle(board: Board, waiting: str, on: str) -> list[str] | None:
    """The path from `on` back to `waiting`, if their relation would close a circle."""
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
    """Who acts on a task: an agent by its `session`, or a person by `name`."""

    session: str | None
    name: str | None = None

    @property
    def generator(self) -> Literal["agent", "human"]:
        return "agent" if self.name is None else "human"

    @property
    def origin(self) -> str:
        return self.session or self.name or "foredeck"

    @property
    def assignee(self) -> str:
        """Who works on its claims."""
        return self.session or self.name or "somebody"

    def lease_ms(self, now_ms: int) -> int | None:
        """End of a claim made now."""
        # A session may end without a word, a person comes back: theirs holds until it is released.
        return None if self.session is None else now_ms + LEASE_MS


def is_own(task: Task, actor: Actor) -> bool:
    """Whether this actor claimed the task, expired or not."""
    return task.status == "in_progress" and task.assignee == actor.assignee


def holds(task: Task, actor: Actor, now_ms: int) -> bool:
    """Whether this actor's claim holds (`Task.is_held`)."""
    return is_own(task, actor) and task.is_held(now_ms)


def held_by_another(task: Task, actor: Actor, now_ms: int) -> ToolError | None:
    """The error if another's claim holds."""
    if is_own(task, actor) or not task.is_held(now_ms):
        return None
    return ToolError(
        f"Already claimed by {holder(task)}{until_of(task)}.",
        "The action ready lists others.",
        "`{} list` shows others.",
    )


def refusal(board: Board, task: Task, actor: Actor, now_ms: int) -> ToolError | None:
    """Why a task cannot be claimed, with advice; None if it can."""
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
    if error := held_by_another(task, actor, now_ms):
        return error
    if blockers := list(board.open_blockers(task)):
        blocker_names = [f"{board.names.name(t.id)} {t.called}" for t in blockers]
        some = some_of(blocker_names, _MOST_NAMED, "; ")
        return ToolError(f"Task is blocked by open dependencies: {some}. Do these first.")
    return None


def holder(task: Task) -> str:
    """Who has claimed a task, in words."""
    if task.session is not None:
        return f"session {short(task.session)}"
    return one_line(task.assignee or "somebody")


def short(session: str) -> str:
    return session[:_SHORT]


def until_of(task: Task) -> str:
    """The end of a claim as a line's ending; may be empty."""
    return "" if task.lease_ms is None else f" until {moment(task.lease_ms)}"


def moment(time_ms: int) -> str:
    """`2026-05-03 14:05 UTC`."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


# Claims that are made while the database which decides them is away.
#
# Such a claim does not touch the task: it is a note of the session's own, on this machine. Once the
# database answers, the task is claimed as any other is, and the first has it. So no version that
# comes late can take a task from its owner.


def pending_claim(store: Store, session: str) -> str | None:
    """The task of a session's provisional claim."""
    head = store.head(claim_id(session))
    if head is None or head.view(ClaimDocument).state != "pending":
        return None
    return head.view(ClaimDocument).task


def note_claim(store: Store, session: str, task: str, state: ClaimState, time_ms: int) -> None:
    """Records a session's claim of `task` as `pending`, or its outcome."""
    claim = ClaimDocument(
        id=claim_id(session),
        session=session,
        task=task,
        state=state,
        time_ms=time_ms,
        provenance=Provenance(origin=session, generator="agent"),
    )
    store.commit(Batch(puts=[claim.seal()]))
