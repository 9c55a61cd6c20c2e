"""`foredeck mcp` on stdin and stdout: its tools, and a readable answer to every request."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Callable
from functools import wraps
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError as Refusal
from mcp.server.stdio import stdio_server
from mcp.types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import ValidationError

from foredeck import __version__
from foredeck.cli.arguments import asked_folder, resolve_config
from foredeck.config import Config
from foredeck.errors import ForedeckError
from foredeck.home import user_name
from foredeck.lookup.reader import Reader
from foredeck.rpc.wire import claim_stdio
from foredeck.search.writing import encodable
from foredeck.tasks.board import Actor
from foredeck.tasks.tools import NO_TASKS
from foredeck_agents.mcp_server.answers import Answers


class Server(MCPServer[Any]):
    """Says in words what is wrong with a call."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        try:
            return await super().call_tool(name, arguments, context)
        except Refusal as error:
            if isinstance(error.__cause__, ValidationError):
                raise Refusal(f"{name}: {what_is_wrong(error.__cause__)}") from None
            raise

    async def run_stdio_async(self) -> None:
        source, sink = claim_stdio()
        lines = anyio.wrap_file(_Lines(os.fdopen(source, "rb"), "utf-8", errors="replace"))
        out = anyio.wrap_file(TextIOWrapper(os.fdopen(sink, "wb"), "utf-8", newline="\n"))
        options = self._lowlevel_server.create_initialization_options()
        async with stdio_server(lines, out) as (read, write):
            await self._lowlevel_server.run(read, write, options)


class _Lines(TextIOWrapper):
    """Lines of JSON without lone surrogates, so that every client gets an answer."""

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
        line = super().readline(-1 if size is None else size)
        if "\\ud" not in line and "\\uD" not in line:
            return line
        try:
            return encodable(json.dumps(json.loads(line), ensure_ascii=False)) + "\n"
        except ValueError:
            return line


def what_is_wrong(error: ValidationError) -> str:
    """Names the unreadable arguments, and why."""
    return "; ".join(map(_problem, error.errors(include_url=False))) + "."


def _problem(problem: Any) -> str:
    name = ".".join(map(str, problem["loc"]))
    if problem["type"] == "missing":
        return f"{name} is missing"
    fault = str(problem["msg"]).partition(", unable")[0].replace("Input should be", "has to be")
    value = repr(problem["input"])
    return f"{name} {fault}" + (f", not {value}" if len(value) <= _SHOWN else "")


_SHOWN = 80


INSTRUCTIONS = (
    "What coding agents have said, done, read and planned on this machine. Begin with "
    "foredeck_search; read an object with foredeck_read, by the name that the search gives, a "
    "path, or the title of a note."
)
_READS = ToolAnnotations(readOnlyHint=True, openWorldHint=False)
_CHANGES = ToolAnnotations(readOnlyHint=False, destructiveHint=False, openWorldHint=False)

_WORDS = {
    "task-query": "foredeck_tasks",
    "task-mutate": "foredeck_change_tasks",
    "`foredeck sessions`": "foredeck_sessions",
    "`foredeck tasks`": "foredeck_tasks",
    "SESSION:@12, or use --session.": "SESSION:@12.",
}
"""What errors say in Pi or at a terminal, and what a client calls instead."""


def run(args: Namespace) -> int:
    """`foredeck mcp`."""
    config = resolve_config(args).config
    make_server(config, asked_folder(args), writes=args.write).run("stdio")
    return 0


def make_server(config: Config, folder: Path, *, writes: bool) -> Server:
    """A server about the project in `folder`, with `writes` if it may change something."""
    answers = Answers(Reader(config), folder, Actor(f"mcp:{user_name()}"))
    server = Server("foredeck", version=__version__, instructions=INSTRUCTIONS)
    reading: list[Callable[..., str]] = [
        answers.search,
        answers.read,
        answers.history,
        answers.links,
        answers.notes,
        answers.sessions,
        answers.memory,
        answers.tasks,
    ]
    for work in [*reading, answers.change_tasks] if writes else reading:
        server.add_tool(
            _refusing(work),
            name=f"foredeck_{work.__name__}",
            description=work.__doc__,
            annotations=_READS if work in reading else _CHANGES,
            structured_output=False,
        )
    return server


def _refusing(work: Callable[..., str]) -> Callable[..., str]:
    @wraps(work)
    def answer(**given: Any) -> str:
        try:
            text = work(**given)
        except ForedeckError as error:
            raise Refusal(encodable(_in_words_of_the_client(str(error)))) from None
        # Whatever else there is to read is a user's or a model's, who may have named Pi's tools.
        return _in_words_of_the_client(text) if text == NO_TASKS else encodable(text)

    return answer


def _in_words_of_the_client(text: str) -> str:
    for ours, theirs in _WORDS.items():
        text = text.replace(ours, theirs)
    return text
