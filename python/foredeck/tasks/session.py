"""A session's part in its project's tasks: tools, and the active task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from foredeck.errors import StoreError
from foredeck.model.memory import working_id
from foredeck.model.quoting import block
from foredeck.model.tasks import TaskDocument
from foredeck.store.protocol import Batch, Scalar
from foredeck.tasks.board import LEASE_MS, Actor, Task, pending_claim, task_of
from foredeck.tasks.tools import ResolveLink, SearchMessages, TaskMutate, TaskQuery, UpdateContext
from foredeck.tasks.wording import clipped, counts_line
from foredeck.tasks.work import TaskWork

_MOST_DESCRIPTION = 400
"""Characters of it in the head."""
_TITLE = 60
_LEAST_CLIPPED = 4
"""A letter and three dots."""

USER = "user"
"""The person at a session."""


class SessionTasks:
    """A session's access to its project's tasks.

    `query`, `mutate` and `active` are the agent's; `user_mutate` the person's.
    """

    facility = "tasks"

    def __init__(
        self,
        work: TaskWork,
        session: str,
        *,
        resolve_link: ResolveLink | None = None,
        update_context: UpdateContext | None = None,
        search_messages: SearchMessages | None = None,
        is_private: Callable[[], bool] = lambda: False,
    ) -> None:
        """Tools without their function are refused in words. `is_private`: may write nothing for
        other sessions."""
        self.work = work
        self.active = ActiveTask(work, session)
        self.query = TaskQuery(work, search_messages)
        claimed = self.active.set
        self.mutate = TaskMutate(work, resolve_link, update_context, claimed, is_private)
        by_user = work.by(Actor(session, USER))
        self.user_mutate = TaskMutate(by_user, resolve_link, update_context, claimed)

    def has_use(self, _notes: Mapping[str, bool]) -> bool:
        """Whether the project has tasks, or a page, which the tools write."""
        store, project = self.work.store, self.work.board.project
        if store.query("task", {"project": project}, limit=1):
            return True
        return store.head(working_id("resource", project)) is not None

    def status_line(self) -> str:
        """The active task, and how many are ready; empty without tasks. Raises `StoreError`."""
        work, board = self.work, self.work.board
        board.refresh()
        if not board.all():
            return ""
        task, line = self.active.task(), counts_line(board, work.now_ms())
        if task is None:
            return line
        return f"{work.name(task)} {clipped(task.title, _TITLE)} · {line}"

    def turn_fields(self) -> Mapping[str, str | None]:
        """The task that a turn belongs to."""
        self.active.keep_lease()  # the session works on: no other may claim its task meanwhile
        return {"task": self.active.id()}

    def take_lines(self) -> Sequence[str]:
        """What became of a provisional claim."""
        lines = tuple(self.work.news)
        self.work.news.clear()
        return lines

    def settle(self) -> Sequence[str]:
        """The outcome of a provisional claim, for the user. Raises `StoreError`."""
        if self.work.news:
            return ()
        self.work.settle()
        return tuple(self.work.news)

    def leave(self) -> None:
        self.active.end_leases()


class ActiveTask:
    """The latest claimed task, as a section of the head."""

    name = "active task"

    def __init__(self, work: TaskWork, session: str) -> None:
        """Looks up the session's earlier claims."""
        self._store = work.store
        self._name_of = work.board.known_name
        self._session = session
        self._now_ms = work.now_ms
        self._id = self._claimed_last()

    def set(self, id: str) -> None:
        """The session has claimed this task."""
        self._id = id

    def id(self) -> str | None:
        """Its id for storing; None if no task is active or readable."""
        try:
            task = self.task()
        except StoreError:
            return None  # what is said is stored all the same
        return None if task is None else task.id

    def keep_lease(self) -> None:
        """Renews leases half over; never raises."""
        # What fails here costs nothing at once: the lease then ends at its time.
        with suppress(StoreError):
            if self.task() is not None:
                for task in self._in_progress():
                    self._renew(task)

    def task(self) -> Task | None:
        """The task. Raises `StoreError` if unreadable."""
        task = self._claimed()
        if task is None and self._id is not None:
            # It was closed, released or taken: the one before it is active again.
            self._id = self._claimed_last()
            task = self._claimed()
        return task

    def _claimed_last(self) -> str | None:
        claimed = sorted(self._in_progress(), key=lambda task: (task.claimed_ms or 0, task.id))
        return claimed[-1].id if claimed else pending_claim(self._store, self._session)

    def _claimed(self) -> Task | None:
        head = None if self._id is None else self._store.head(self._id)
        if head is None:
            return None
        task = task_of(head)
        if task.session == self._session and task.status == "in_progress":
            return task
        # A provisional claim counts for as long as the database may still grant it.
        is_free = task.status == "open" or not task.is_held(self._now_ms())
        provisional = pending_claim(self._store, self._session) == task.id
        return task if provisional and is_free and not task.is_closed else None

    def text(self, limit: int) -> str:
        """The task, with as much description as fits."""
        task = self.task()
        if task is None:
            return ""
        line = f"{self._name_of(task.id)} P{task.priority}: {task.called}"
        if len(line) > limit:
            return ""
        room = min(limit - len(line) - 1, _MOST_DESCRIPTION)
        document = self._store.get(task.id, TaskDocument)
        stored = None if document is None else document.content
        description = clipped(stored or "", max(room - 1, _LEAST_CLIPPED))
        return f"{line}\n{block(description)}" if 0 < len(description) < room else line

    def end_leases(self) -> None:
        """Frees the session's claims; never raises."""
        # Without this the leases end by themselves.
        with suppress(StoreError):
            now = self._now_ms()
            for task in self._in_progress():
                if task.is_held(now):
                    self._set_lease(task, now)

    def _in_progress(self) -> list[Task]:
        where: dict[str, Scalar | None] = {"session": self._session, "status": "in_progress"}
        return [task_of(head) for head in self._store.query("task", where)]

    def _renew(self, task: Task) -> None:
        now = self._now_ms()
        if task.session != self._session or task.lease_ms is None:
            return
        if task.lease_ms - now > LEASE_MS / 2 or (self._store.is_shared and task.lease_ms <= now):
            # A lease that has ended on a shared store is not renewed here: another machine may have
            # claimed the task, and only the database knows.
            return
        self._set_lease(task, Actor(self._session).lease_ms(now))

    def _set_lease(self, task: Task, until_ms: int | None) -> None:
        document = self._store.get(task.id, TaskDocument, task.token)
        assert document is not None
        document.lease_ms = until_ms
        # Refused where another has claimed or changed the task meanwhile: nothing is left to renew.
        self._store.commit(Batch(puts=[document.seal()], expect={task.id: task.token}))
