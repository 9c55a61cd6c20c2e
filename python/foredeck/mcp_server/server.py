"""The server: its tools, as clients of the protocol see them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError as Refusal
from mcp.types import ToolAnnotations
from pydantic import Field

from foredeck import __version__
from foredeck.config import Config
from foredeck.errors import ForedeckError
from foredeck.mcp_server.answers import MOST_HITS, Answers
from foredeck.search.types import SearchedType

P = ParamSpec("P")

INSTRUCTIONS = (
    "What coding agents have said, done, read and planned on this machine. Begin with search; read "
    "an object by the id that it names, a path, or the title of a note."
)
_READS = ToolAnnotations(readOnlyHint=True, openWorldHint=False)
_CHANGES = ToolAnnotations(readOnlyHint=False, destructiveHint=False, openWorldHint=False)

Name = Annotated[
    str, Field(description="As search names it; an id, a path, a nickname, or SESSION:@12")
]


def make_server(config: Config, folder: Path, *, writes: bool) -> MCPServer[Any]:
    """A server about the project in `folder`. Without `writes` nothing that it does changes
    anything."""
    answers = Answers(config, folder)
    server: MCPServer[Any] = MCPServer("foredeck", version=__version__, instructions=INSTRUCTIONS)

    def tool(description: str, work: Callable[..., str], *, reads: bool = True) -> None:
        annotations = _READS if reads else _CHANGES
        server.add_tool(
            work,
            name=work.__name__.replace("_", "-"),
            description=description,
            annotations=annotations,
            structured_output=False,
        )

    _add_reading(answers, tool)
    if writes:
        _add_writing(answers, tool)
    return server


def _add_reading(answers: Answers, tool: Callable[..., None]) -> None:
    def search(
        query: str,
        type: SearchedType | None = None,
        session: str | None = None,
        limit: Annotated[int, Field(ge=1, le=MOST_HITS)] = 5,
    ) -> str:
        return _said(lambda: answers.search(query, type, session, limit))

    def read(
        object: Name,
        version: Annotated[int, Field(ge=1)] | None = None,
        offset: Annotated[int, Field(ge=0)] = 0,
    ) -> str:
        return _said(lambda: answers.read(object, version, offset))

    def history(object: Name) -> str:
        return _said(lambda: answers.history(object))

    def links(object: Name) -> str:
        return _said(lambda: answers.links(object))

    def notes(tag: str | None = None) -> str:
        return _said(lambda: answers.notes(tag))

    def task_query(
        action: Literal["ready", "show", "list", "search"] = "ready",
        id: str | None = None,
        query: str | None = None,
        status: Literal["open", "in_progress", "closed"] | None = None,
    ) -> str:
        given = {"action": action, "id": id, "query": query, "status": status}
        return _said(lambda: answers.tasks({k: v for k, v in given.items() if v is not None}))

    tool("Find what was said, done, read or planned in any session, by its words.", search)
    tool("The text of an object: a file, a tool's output, a chat. Old versions by number.", read)
    tool("The versions of an object, the oldest first.", history)
    tool("What an object refers to, and what refers to it.", links)
    tool("Notes and other Markdown files, all or those with a tag.", notes)
    tool("Tasks of the project: which are ready, one by id, all, or by their words.", task_query)


def _add_writing(answers: Answers, tool: Callable[..., None]) -> None:
    def task_mutate(
        action: Literal["create", "claim", "close", "dep", "update"],
        fields: Annotated[
            dict[str, Any],
            Field(description='{"title": ...}; {"id", "reason", "summary"}; {"id", "dependsOn"}'),
        ],
    ) -> str:
        return _said(lambda: answers.change_tasks({**fields, "action": action}))

    tool("Make, claim, close, connect and change tasks of the project.", task_mutate, reads=False)


def _said(work: Callable[[], str]) -> str:
    """What the work answers; what it refuses is told to the model, which can do otherwise."""
    try:
        return work()
    except ForedeckError as error:
        raise Refusal(str(error)) from None
