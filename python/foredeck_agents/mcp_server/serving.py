"""`foredeck mcp` on stdin and stdout: every request gets a readable answer."""

from __future__ import annotations

import json
import os
from io import TextIOWrapper
from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError as Refusal
from mcp.server.stdio import stdio_server
from mcp.types import CallToolResult, InputRequiredResult
from pydantic import ValidationError

from foredeck.rpc.wire import claim_stdio
from foredeck.search.writing import encodable


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
