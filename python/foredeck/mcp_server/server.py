"""The server: its tools, as clients of the protocol see them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError as Refusal
from mcp.types import ToolAnnotations
from pydantic import Field

from foredeck import __version__
from foredeck.config import Config
from foredeck.errors import ForedeckError
from foredeck.mcp_server.answers import MOST_HITS, MOST_ROWS, Answers
from foredeck.search import SEARCHED_TYPES, SearchedType
from foredeck.tasks.inputs import REASONS, TYPES
from foredeck.tasks.tools import NO_TASKS

INSTRUCTIONS = (
    "What coding agents have said, done, read and planned on this machine. Begin with "
    "foredeck_search; read an object with foredeck_read, by the name that the search gives, a "
    "path, or the title of a note."
)
_READS = ToolAnnotations(readOnlyHint=True, openWorldHint=False)
_CHANGES = ToolAnnotations(readOnlyHint=False, destructiveHint=False, openWorldHint=False)

_FORMER = {
    "search": "foredeck_search",
    "read": "foredeck_read",
    "history": "foredeck_history",
    "links": "foredeck_links",
    "notes": "foredeck_notes",
    "task-query": "foredeck_tasks",
    "task-mutate": "foredeck_change_tasks",
}
"""Names that clients' prompts may still have: accepted, and not listed."""

_WORDS = {
    "task-query": "foredeck_tasks",
    "task-mutate": "foredeck_change_tasks",
    "`foredeck sessions`": "foredeck_sessions",
    "`foredeck tasks`": "foredeck_tasks",
    "SESSION:@12, or use --session.": "SESSION:@12.",
}
"""What errors say to a model in Pi or to a person at a terminal, and what a client is to call
instead."""

Object = Annotated[
    str,
    Field(
        description="Which object: the name that foredeck_search gives it, a path, the title of a "
        "note, an id, or SESSION:@12"
    ),
]
Status = Literal["open", "in_progress", "closed"]


class _ToolServer(MCPServer[Any]):
    """A server that also answers to the former names of its tools."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """See `MCPServer`."""
        name = _FORMER.get(name, name)
        if name == "foredeck_change_tasks" and isinstance(arguments.get("fields"), dict):
            # The former form of this tool: all but the action in one object.
            arguments = {**arguments["fields"], "action": arguments.get("action")}
        return await super().call_tool(name, arguments, context)


def make_server(config: Config, folder: Path, *, writes: bool) -> MCPServer[Any]:
    """A server about the project in `folder`. Without `writes` nothing that it does changes
    anything."""
    answers = Answers(config, folder)
    server = _ToolServer("foredeck", version=__version__, instructions=INSTRUCTIONS)

    def tool(description: str, work: Callable[..., str], *, reads: bool = True) -> None:
        server.add_tool(
            work,
            name=f"foredeck_{work.__name__}",
            description=description,
            annotations=_READS if reads else _CHANGES,
            structured_output=False,
        )

    _add_reading(answers, tool)
    if writes:
        _add_writing(answers, tool)
    return server


def _add_reading(answers: Answers, tool: Callable[..., None]) -> None:
    def search(
        query: Annotated[str, Field(description="Words, names or paths to look for")],
        type: Annotated[
            SearchedType | None,
            Field(description=f"Only hits of this type: {', '.join(SEARCHED_TYPES)}"),
        ] = None,
        session: Annotated[
            str | None, Field(description="Only this session: its id or the start of one")
        ] = None,
        limit: Annotated[int, Field(ge=1, le=MOST_HITS, description="Hits at most")] = 5,
    ) -> str:
        return _said(lambda: answers.search(query, type, session, limit))

    def read(
        object: Object,
        version: Annotated[
            int | None, Field(ge=1, description="An old version, by its number (default: newest)")
        ] = None,
        offset: Annotated[
            int, Field(ge=0, description="At which character to begin, in a long text")
        ] = 0,
    ) -> str:
        return _said(lambda: answers.read(object, version, offset))

    def history(object: Object) -> str:
        return _said(lambda: answers.history(object))

    def links(object: Object) -> str:
        return _said(lambda: answers.links(object))

    def notes(
        tag: Annotated[str | None, Field(description="Only notes with this tag")] = None,
    ) -> str:
        return _said(lambda: answers.notes(tag))

    def sessions(
        limit: Annotated[int, Field(ge=1, le=MOST_ROWS, description="Sessions at most")] = 20,
    ) -> str:
        return _said(lambda: answers.sessions(limit))

    def memory() -> str:
        return _said(answers.memory)

    def tasks(
        action: Annotated[
            Literal["ready", "show", "list", "search"],
            Field(description="ready: what can be begun; show: one, by id; list; search: by words"),
        ] = "ready",
        id: Annotated[str | None, Field(description="For show: the task, as in t-k3f9")] = None,
        query: Annotated[str | None, Field(description="For search: words of the task")] = None,
        status: Annotated[Status | None, Field(description="For list: only these tasks")] = None,
        limit: Annotated[int | None, Field(ge=1, le=100, description="Tasks at most")] = None,
    ) -> str:
        given = {"action": action, "id": id, "query": query, "status": status, "limit": limit}
        return _said(lambda: answers.tasks(_given(given)))

    tool("Find what was said, done, read or planned in any session, by its words.", search)
    tool("The text of an object: a file, a tool's output, a chat. Old versions by number.", read)
    tool("The versions of an object, the oldest first.", history)
    tool("What an object refers to, and what refers to it.", links)
    tool("Notes and other Markdown files, all or those with a tag.", notes)
    tool("Sessions, the latest first: id, time, project, title. Read one as chat:ID.", sessions)
    tool("What the user has said should be remembered, as far as it applies here.", memory)
    tool("Tasks of the project: which are ready, one by id, all, or by their words.", tasks)


def _add_writing(answers: Answers, tool: Callable[..., None]) -> None:
    def change_tasks(
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
        given = {
            **{"action": action, "id": id, "title": title, "description": description},
            **{"priority": priority, "type": type, "labels": labels, "parent": parent},
            **{"dependsOn": dependsOn, "add": add, "status": status},
            **{"reason": reason, "summary": summary},
        }
        return _said(lambda: answers.change_tasks(_given(given)))

    tool("Make, claim, close, connect and change tasks of the project.", change_tasks, reads=False)


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _said(work: Callable[[], str]) -> str:
    """What the work answers. The model reads why something is refused, and can try otherwise."""
    try:
        text = work()
    except ForedeckError as error:
        raise Refusal(_in_words_of_the_client(str(error))) from None
    # Whatever else there is to read is a user's or a model's, who may have named Pi's tools.
    return _in_words_of_the_client(text) if text == NO_TASKS else text


def _in_words_of_the_client(text: str) -> str:
    for ours, theirs in _WORDS.items():
        text = text.replace(ours, theirs)
    return text
