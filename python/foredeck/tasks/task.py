"""A task as it is worked with: its newest version without the description."""

from __future__ import annotations

from pydantic import PrivateAttr

from foredeck.model.quoting import one_line
from foredeck.model.tasks import TaskDocument
from foredeck.store.clock import DAY_MS
from foredeck.store.protocol import Head, Token

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
