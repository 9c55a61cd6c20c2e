"""How an agent loop's messages become the engine's, and go back.

A *group* is what one message of the loop becomes: several of the engine's where a message holds the
results of several tools.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from foredeck.context.messages.items import text_block
from foredeck.errors import ForedeckError

Message = dict[str, Any]


class UnknownMessage(ForedeckError, ValueError):
    """A message that is in no shape that can be read."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call of the model's."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CountedTokens:
    """What the provider has counted of one call, in tokens."""

    fresh: int
    read: int = 0
    written: int = 0


class MessageFormat(Protocol):
    """The messages of one API."""

    api: str
    """As the engine knows the API: what may be changed in earlier messages depends on it."""

    def to_engine(self, message: Mapping[str, Any], names: Mapping[str, str]) -> list[Message]:
        """One message as the engine's, without time stamps. `names`: tools by the id of the call.

        Raises `UnknownMessage`.
        """

    def from_engine(self, group: Sequence[Message], original: Mapping[str, Any] | None) -> Message:
        """What goes out for a group that foredeck has changed; `original` is None for one that it
        has added."""

    def is_system(self, message: Mapping[str, Any]) -> bool:
        """Whether a message is a system prompt, which comes before all others."""

    def tool(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        """A definition (name, description, parameters) as the API declares it."""

    def to_definition(self, tool: Mapping[str, Any]) -> dict[str, Any]:
        """The inverse of `tool`."""

    def tool_uses(self, message: Mapping[str, Any]) -> list[ToolRequest]:
        """The tool calls in an answer of the model's."""

    def result(self, call: ToolRequest, text: str, *, failed: bool) -> dict[str, Any]:
        """The result of a tool: a message, or a block of one where the API wants that."""

    def usage(self, reported: Mapping[str, Any]) -> CountedTokens:
        """The API's own figures."""


def blocks_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The content blocks of one of the engine's messages."""
    content = message.get("content")
    if isinstance(content, str):
        return [text_block(content)]
    return [block for block in content or () if isinstance(block, dict)]


def result_message(
    id: str, names: Mapping[str, str], content: list[dict[str, Any]], *, failed: bool
) -> Message:
    """A tool's result as the engine's message. `names`: tools by the id of the call."""
    return {
        "role": "toolResult",
        "toolCallId": id,
        "toolName": names.get(id, "tool"),
        "content": content,
        "isError": failed,
    }


def definition_of(tool: Mapping[str, Any], parameters: str = "parameters") -> dict[str, Any]:
    """A tool's definition; `parameters`: the member that the API has them in."""
    return {
        "name": tool.get("name"),
        "description": tool.get("description") or "",
        "parameters": tool.get(parameters) or {},
    }


def as_mapping(message: Any) -> Mapping[str, Any]:
    """A message as plain data, also where an API's client has given an object of its own.

    Raises `UnknownMessage`.
    """
    if isinstance(message, Mapping):
        return message
    dump = getattr(message, "model_dump", None)
    plain = dump(exclude_none=True) if dump is not None else None
    if not isinstance(plain, Mapping):
        raise UnknownMessage(f"a {type(message).__name__} is no message that can be read")
    return plain


def as_json(data: Any) -> bytes:
    """JSON as it is sent. Half a character, such as a client leaves that cuts in UTF-16, is
    escaped."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")
