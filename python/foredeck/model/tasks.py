"""Tasks of a project, versioned like other objects."""

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
    """A relation to task `on`; only `blocks` and `parent-child` have consequences."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    on: str
    relation: Relation = "blocks"


class TaskLink(BaseModel):
    """A message or object related to a task: an `output` of the work, or a `reference`."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    object: str
    part: str = ""
    label: str = ""
    relation: Literal["output", "reference"] = "reference"


class TaskDocument(Document):
    """A project's task; `content` is its description. Times in milliseconds since 1970."""

    metadata_fields: ClassVar[tuple[str, ...]] = ("title", "status", "priority", "summary")

    type: str = "task"
    project: str
    """Project id (`sources.projects`)."""
    title: str
    """One line."""
    status: TaskStatus = "open"
    priority: int = 2
    """From 0, the most urgent, to 4."""
    task_type: TaskType = "task"
    assignee: str | None = None
    """Session id or a person's name."""
    session: str | None = None
    """The claiming session; in a closed task, the last one."""
    claimed_ms: int | None = None
    lease_ms: int | None = None
    """End of the claim; None: until released."""
    labels: list[str] = Field(default_factory=list)
    dependencies: list[TaskDependency] = Field(default_factory=list)
    links: list[TaskLink] = Field(default_factory=list)
    created_by: str | None = None
    """The session or person that made it."""
    created_ms: int
    updated_ms: int
    closed_ms: int | None = None
    close_reason: CloseReason | None = None
    summary: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class ClaimDocument(Document):
    """A claim made while the deciding database was away; at most one per session."""

    type: str = "claim"
    session: str
    task: str
    state: ClaimState = "pending"
    time_ms: int = 0


def claim_id(session: str) -> str:
    return f"claim:{session}"
