"""Agent loops as anyone would write them, on the scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from foredeck import ContextManager
from foredeck.embedded.format import ToolRequest

Json = dict[str, Any]
SYSTEM = "You are a careful engineer."
READ: Json = {
    "name": "read",
    "description": "Read a file",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}


def run_tool(folder: Path, use: ToolRequest) -> str:
    """The loop's own tools."""
    file = folder / str(use.arguments["path"])
    if use.name == "write":
        file.write_text(str(use.arguments["content"]))
        return f"Wrote {file.name}."
    return file.read_text()


def chat_loop(context: ContextManager, url: str, folder: Path, messages: list[Json]) -> list[Json]:
    """A loop on chat completions; the whole conversation at its end."""
    tools = [{"type": "function", "function": READ}, *context.tools]
    while True:
        sent = context.prepare(messages, tools=tools)
        body = {"model": "model", "messages": sent, "tools": tools, "stream": False}
        answer = _post(f"{url}/v1/chat/completions", body)
        context.report(answer["usage"])
        messages.append(answer["choices"][0]["message"])
        uses = context.calls_in(messages[-1])
        if not uses:
            return messages
        for use in uses:
            if context.owns(use.name):
                messages.append(context.call(use))
            else:
                messages.append(context.observed(use, run_tool(folder, use)))


def anthropic_loop(
    context: ContextManager, url: str, folder: Path, messages: list[Json]
) -> list[Json]:
    """The same on Anthropic's API."""
    own = {"name": "read", "description": "Read", "input_schema": READ["parameters"]}
    tools = [own, *context.tools]
    while True:
        sent = context.prepare(messages, tools=tools, system=SYSTEM)
        body = {"model": "model", "max_tokens": 100, "system": SYSTEM, "messages": sent}
        answer = _post(f"{url}/v1/messages", {**body, "tools": tools, "stream": False})
        context.report(answer["usage"])
        messages.append({"role": "assistant", "content": answer["content"]})
        uses = context.calls_in(messages[-1])
        if not uses:
            return messages
        results = [
            context.call(use)
            if context.owns(use.name)
            else context.observed(use, run_tool(folder, use))
            for use in uses
        ]
        messages.append({"role": "user", "content": results})


Loop = Callable[[ContextManager, str, Path, list[Json]], list[Json]]
LOOPS: dict[str, Loop] = {"chat": chat_loop, "anthropic": anthropic_loop}


def opening(format: str, text: str) -> list[Json]:
    """How a conversation begins."""
    user = {"role": "user", "content": text}
    return [{"role": "system", "content": SYSTEM}, user] if format == "chat" else [user]


def _post(url: str, body: Json) -> Json:
    answer = httpx.post(url, json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    value: Json = json.loads(answer.content)
    return value
