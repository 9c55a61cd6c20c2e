"""New versions of tasks, each by compare-and-put on what was read before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from foredeck.errors import Conflict, StoreUnavailable, ToolError
from foredeck.model.documents import Provenance
from foredeck.model.tasks import TaskDocument
from foredeck.store.clock import now_ms
from foredeck.store.protocol import ATTEMPTS, Batch, LocalStore, Token
from foredeck.tasks.board import Board
from foredeck.tasks.claiming import Actor, holds
from foredeck.tasks.task import Task

_AWAY = (
    "The database is away: until it is back, make new tasks, and change only those that you have "
    "claimed."
)

Edit = Callable[[TaskDocument, Task], None]
"""Changes a task's next version. Given with it: the task as it is. Raises `ToolError`."""


@dataclass
class TaskWriter:
    """Writes for one `actor` into the project of `board`.

    `away` says whether the last change is only on this machine so far, since the database that
    others share did not answer.
    """

    store: LocalStore
    board: Board
    actor: Actor
    clock: Callable[[], int] = now_ms
    away: bool = field(default=False, init=False)

    def new(self, document: TaskDocument) -> Task:
        """Store a task that is not there yet."""
        self._put(document, {document.id: None}, can_wait=True)
        return self._reread(document.id)

    def change(
        self, id: str, edit: Edit, *, together: tuple[str, ...] = (), is_claim: bool = False
    ) -> Task:
        """Store the next version of a task, as `edit` makes it.

        Where somebody was faster, `edit` is called again with what they made of it, so it must go
        by the task that it is given, and by nothing that it knew before. `together`: tasks that
        must not have changed either.

        While a database that others share is away, only what nobody else may change is written to
        this machine alone: new tasks, and those that the actor holds. For all else `ToolError` is
        raised, and `StoreUnavailable` for a claim (`is_claim`). Written here and delivered later,
        it could undo what another machine has been granted meanwhile.
        """
        for _ in range(ATTEMPTS):
            task = self._reread(id)
            document = self._next(task)
            edit(document, task)
            expect: dict[str, Token | None] = {id: task.token}
            expect |= {other: self._reread(other).token for other in together}
            try:
                can_wait = not is_claim and holds(task, self.actor, self.clock())
                self._put(document, expect, can_wait=can_wait)
            except StoreUnavailable:
                if is_claim or not self.store.is_shared:
                    raise
                raise ToolError(_AWAY) from None
            except Conflict:
                self.board.refresh()
                continue
            return self._reread(id)
        raise ToolError(f"{self.board.names.name(id)} is being changed by others: try again.")

    def _next(self, task: Task) -> TaskDocument:
        stored = self.store.get(task.id, TaskDocument, task.token)
        assert stored is not None
        document = stored.model_copy(deep=True)
        document.provenance = self.provenance()
        document.updated_ms = max(self.clock(), task.updated_ms)
        return document

    def provenance(self) -> Provenance:
        """Of what is written now."""
        return Provenance(origin=self.actor.origin, generator=self.actor.generator)

    def _put(
        self, document: TaskDocument, expect: dict[str, Token | None], *, can_wait: bool
    ) -> None:
        batch = Batch(puts=[document.seal()], expect=expect)
        self.away = False
        try:
            self.store.commit_for_all(batch)
        except StoreUnavailable:
            if not (can_wait and self.store.is_shared):
                raise
            self.store.commit(batch)
            self.away = True
        self.board.refresh()

    def _reread(self, id: str) -> Task:
        task = self.board.get(id)
        if task is None:
            raise ToolError(
                "Task not found: it has been erased. The action list shows what is there."
            )
        return task
