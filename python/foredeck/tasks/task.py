"""A task as it is worked with: its newest version without the description."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from foredeck.model.quoting import one_line
from foredeck.model.tasks import TaskDependency, TaskLink
from foredeck.store.clock import DAY_MS
from foredeck.store.protocol import Head, Token

SUMMARISED_MS, ARCHIVED_MS = 7 * DAY_MS, 30 * DAY_MS
"""How long a task is closed before its summary replaces its description, and before it is
shown by a line alone."""


@dataclass(frozen=True, slots=True)
class Task:
    """One task; the fields as in `TaskDocument`. `generator` says who made this version."""

    id: str
    token: Token
    title: str
    status: str
    priority: int
    task_type: str
    assignee: str | None
    session: str | None
    claimed_ms: int | None
    lease_ms: int | None
    labels: tuple[str, ...]
    dependencies: tuple[TaskDependency, ...]
    links: tuple[TaskLink, ...]
    created_ms: int
    updated_ms: int
    closed_ms: int | None
    close_reason: str | None
    summary: str | None
    metadata: dict[str, Any]
    generator: str

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
    fields = head.fields
    return Task(
        id=head.id,
        token=head.token,
        title=fields["title"],
        status=fields["status"],
        priority=fields["priority"],
        task_type=fields["task_type"],
        assignee=fields.get("assignee"),
        session=fields.get("session"),
        claimed_ms=fields.get("claimed_ms"),
        lease_ms=fields.get("lease_ms"),
        labels=tuple(fields.get("labels") or ()),
        dependencies=tuple(TaskDependency(**d) for d in fields.get("dependencies") or ()),
        links=tuple(TaskLink(**link) for link in fields.get("links") or ()),
        created_ms=fields["created_ms"],
        updated_ms=fields["updated_ms"],
        closed_ms=fields.get("closed_ms"),
        close_reason=fields.get("close_reason"),
        summary=fields.get("summary"),
        metadata=dict(fields.get("metadata") or {}),
        generator=(fields.get("provenance") or {}).get("generator", "agent"),
    )
