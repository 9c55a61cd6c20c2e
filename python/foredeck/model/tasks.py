"""Tasks: what is to be done in a project, as versioned objects like any other."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from foredeck.model.documents import Document

TaskStatus = Literal["open", "in_progress", "closed"]
TaskType = Literal["bug", "feature", "task", "epic", "chore"]
CloseReason = Literal["completed", "wontfix", "duplicate"]
ClaimState = Literal["pending", "won", "lost", "dropped"]
Relation = Literal["blocks", "parent-child", "related", "supersedes", "duplicates"]


class TaskDependency(BaseModel):
    """What a task has to do with another one, `on`; it is kept in the task that it is said of.

    blocks        `on` must be closed before this task can be begun
    parent-child  `on` is the epic that this task is a part of
    related       nothing follows from it
    supersedes    this task takes the place of `on`
    duplicates    this task says the same as `on`
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    on: str
    relation: Relation = "blocks"


class TaskLink(BaseModel):
    """A message or object that has to do with a task.

    `object` is its id, `part` what of it is meant (`turn 7`), `label` a name that opens it
    (`SESSION:@41`). `relation`: `output` of the work, or a `reference` that the work builds on.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    object: str
    part: str = ""
    label: str = ""
    relation: Literal["output", "reference"] = "reference"


class TaskDocument(Document):
    """A task of a project. `content` is its description, or None.

    Whether it is blocked is not in here: that follows from other tasks. Nor is how far it has
    decayed, which follows from when it was closed. Times are milliseconds since 1970.
    """

    metadata_fields: ClassVar[tuple[str, ...]] = ("title", "status", "priority", "summary")

    type: str = "task"
    project: str
    """Id of the project (`sources.projects`)."""
    title: str
    """One line."""
    status: TaskStatus = "open"
    priority: int = 2
    """From 0, the most urgent, to 4."""
    task_type: TaskType = "task"
    assignee: str | None = None
    """Who works on it: a session's id, or a person's name."""
    session: str | None = None
    """The session that has claimed it; the one that had, where it is closed."""
    claimed_ms: int | None = None
    lease_ms: int | None = None
    """Until when no other session may claim it; None: until it is released."""
    labels: list[str] = Field(default_factory=list)
    dependencies: list[TaskDependency] = Field(default_factory=list)
    links: list[TaskLink] = Field(default_factory=list)
    created_by: str | None = None
    """The session, or the person, that made it."""
    created_ms: int
    updated_ms: int
    closed_ms: int | None = None
    close_reason: CloseReason | None = None
    summary: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class ClaimDocument(Document):
    """A claim that was made while the database that decides claims was away.

    A session has one at most. `state`: it waits (`pending`), became a claim (`won`), lost to
    another (`lost`), or was given up (`dropped`).
    """

    type: str = "claim"
    session: str
    task: str
    state: ClaimState = "pending"
    time_ms: int = 0


def claim_id(session: str) -> str:
    """Id of the document for a session's provisional claim."""
    return f"claim:{session}"
