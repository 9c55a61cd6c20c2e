"""System messages: the prompt in named sections, and the tools that come and go."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from foredeck.context.messages.items import message_text
from foredeck.context.messages.shape import Message


def sections_as_text(messages: list[Any]) -> list[Message]:
    """The messages with `content` as the text that is sent, and without `sections`."""
    # A host may keep the prompt in named sections whose order counts: the leading message declares
    # them, later ones replace or remove them. An object's order does not survive in the store, so
    # the sections are written out as text before anything is kept.
    found = [message for message in messages if isinstance(message, dict)]
    return [_with_text(message, leading=n == 0) for n, message in enumerate(found)]


def tools_declared(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The tools that a model has after these system messages, as `context/assemble` names them."""
    tools: dict[Any, dict[str, Any]] = {}
    for message in messages:
        for gone in _objects_in(message, "toolsRemoved"):
            tools.pop(gone.get("name"), None)
        for tool in _objects_in(message, "toolsAdded"):
            tools[tool.get("name")] = {
                name: tool.get(name) for name in ("name", "description", "parameters")
            }
    return [*tools.values()]


def _objects_in(message: Message, name: str) -> list[dict[str, Any]]:
    listed = message.get(name)
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _with_text(message: Message, *, leading: bool) -> Message:
    sections = message.get("sections")
    named = sections.items() if isinstance(sections, dict) else ()
    texts = [message_text(message)]
    texts += [_section(name, text, leading=leading) for name, text in named]
    rest = {name: value for name, value in message.items() if name != "sections"}
    return {**rest, "content": "\n\n".join(text for text in texts if text)}


def _section(name: str, text: Any, *, leading: bool) -> str:
    if leading:
        return text if isinstance(text, str) else ""
    if text is None:
        return f'Removed system prompt section "{name}".'
    return f'Updated system prompt section "{name}":\n\n{text}'
