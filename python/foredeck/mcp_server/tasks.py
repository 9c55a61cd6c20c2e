"""The tasks of a project, for clients of `foredeck mcp`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from foredeck.config import Config
from foredeck.home import user_name
from foredeck.lookup.reader import Reader
from foredeck.sources.projects import project_at
from foredeck.store.protocol import LocalStore
from foredeck.tasks.board import Actor
from foredeck.tasks.tools import REASONS, TYPES, TaskMutate, TaskQuery
from foredeck.tasks.work import TaskWork

Status = Literal["open", "in_progress", "closed"]


class TaskAnswers:
    """The tools about the tasks of the project in `folder`. A docstring is what clients read of a
    tool."""

    def __init__(self, config: Config, folder: Path) -> None:
        self._reader = Reader(config)
        self._config = config
        self._folder = str(folder)

    def tasks(
        self,
        action: Annotated[
            Literal["ready", "show", "list", "search"],
            Field(description="ready: what can be begun; show: one, by id; list; search: by words"),
        ] = "ready",
        id: Annotated[str | None, Field(description="For show: the task, as in t-k3f9")] = None,
        query: Annotated[str | None, Field(description="For search: words of the task")] = None,
        status: Annotated[Status | None, Field(description="For list: only these tasks")] = None,
        limit: Annotated[int | None, Field(ge=1, le=100, description="Tasks at most")] = None,
    ) -> str:
        """Tasks of the project: which are ready, one by id, all, or by their words."""
        given = _given(locals())
        with self._reader.store() as store:
            return TaskQuery(self._work(store)).run(given)

    def change_tasks(
        self,
        action: Annotated[
            Literal["create", "claim", "close", "dep", "update"],
            Field(description="create needs title; claim id; close id, summary; dep id, dependsOn"),
        ],
        id: Annotated[str | None, Field(description="The task, as in t-k3f9")] = None,
        title: Annotated[str | None, Field(description="What is to be done, in one line")] = None,
        description: Annotated[str | None, Field(description="More about it")] = None,
        priority: Annotated[
            int | None, Field(ge=0, le=4, description="0 is the most urgent; default 2")
        ] = None,
        type: Annotated[
            str | None,
            Field(
                description=f"Of a task: {', '.join(TYPES)}; for dep: blocks, parent-child, "
                "related, supersedes, duplicates"
            ),
        ] = None,
        labels: Annotated[list[str] | None, Field(description="Its labels")] = None,
        parent: Annotated[str | None, Field(description="The task that it is part of")] = None,
        dependsOn: Annotated[  # noqa: N803  (as in Pi's tool, whose errors name it)
            str | list[str] | None, Field(description="What must be closed before it")
        ] = None,
        add: Annotated[
            bool | None, Field(description="For dep: false removes the dependency")
        ] = None,
        status: Annotated[Status | None, Field(description="For update: its status")] = None,
        reason: Annotated[str | None, Field(description=f"For close: {', '.join(REASONS)}")] = None,
        summary: Annotated[str | None, Field(description="For close: what was done")] = None,
    ) -> str:
        """Make, claim, close, connect and change tasks of the project."""
        given = _given(locals())
        with self._reader.store() as store:
            return TaskMutate(self._work(store)).run(given)

    def _work(self, store: LocalStore) -> TaskWork:
        project = project_at(self._config, self._folder).id
        work = TaskWork(store, project, Actor(f"mcp:{user_name()}"))
        work.board.refresh()
        return work


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a client has given of a tool's arguments."""
    return {n: value for n, value in arguments.items() if n != "self" and value is not None}
