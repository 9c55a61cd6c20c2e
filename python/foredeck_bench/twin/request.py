"""A request for scripts and tests, whichever API it came by."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Api = Literal[
    "anthropic-messages", "openai-completions", "openai-responses", "google-generative-ai"
]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request body; items are messages of chat completions, `sent` is the original.

    `index` counts from 0.
    """

    index: int
    api: Api
    body: Json
    sent: Json | None = None

    @property
    def raw(self) -> Json:
        """The body as the wire has it."""
        return self.body if self.sent is None else self.sent

    @property
    def messages(self) -> list[Json]:
        """The messages as they came, system messages of the OpenAI form included."""
        messages = self.body.get("messages")
        return messages if isinstance(messages, list) else []

    @property
    def newest(self) -> Json:
        return next(m for m in reversed(self.messages) if m.get("content"))

    @property
    def system(self) -> str:
        """The system prompt's text."""
        if self.api == "anthropic-messages":
            return content_text(self.body.get("system"))
        parts = [m for m in self.messages if m.get("role") in ("system", "developer")]
        return "\n".join(content_text(m.get("content")) for m in parts)

    @property
    def tools(self) -> tuple[str, ...]:
        offered = [t for t in self.body.get("tools") or () if not t.get("defer_loading")]
        names = dict.fromkeys((t.get("function") or t).get("name", "") for t in offered)
        for message in self.messages:
            if message.get("role") == "system":
                for block in _blocks(message):
                    if block.get("type") == "tool_addition":
                        tool = block["tool"]
                        names[(tool.get("definition") or tool)["name"]] = None
                    elif block.get("type") == "tool_removal":
                        names.pop(block["tool"]["name"], None)
        return tuple(names)

    @property
    def text(self) -> str:
        """All that the model sees in messages: text, arguments, results."""
        return "\n".join(
            message_text(m) for m in self.messages if m.get("role") not in ("system", "developer")
        )

    @property
    def results(self) -> dict[str, str]:
        return dict(_results(self.messages))

    @property
    def calls(self) -> dict[str, tuple[str, Json]]:
        return dict(_calls(self.messages))

    def find(self, pattern: str) -> str:
        """The last match of `pattern`: its first group, or all. Raises LookupError."""
        matches = list(re.finditer(pattern, self.text))
        if not matches:
            raise LookupError(f"nothing in the prompt matches {pattern!r}")
        return str(matches[-1].group(1 if matches[-1].re.groups else 0))


def content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(_block_text(block) for block in content)


def message_text(message: Json) -> str:
    parts = [content_text(message.get("content"))]
    for tool_call in message.get("tool_calls") or ():
        parts.append(str(tool_call.get("function", {}).get("arguments", "")))
    return "\n".join(part for part in parts if part)


def _block_text(block: Any) -> str:
    if not isinstance(block, dict):
        return ""
    kind = block.get("type")
    if kind == "tool_use":
        return json.dumps(block.get("input"), ensure_ascii=False)
    if kind == "tool_result":
        return content_text(block.get("content"))
    if kind == "thinking":
        return str(block.get("thinking", ""))
    return str(block.get("text", ""))


def _blocks(message: Json) -> list[Json]:
    content = message.get("content")
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def _results(messages: list[Json]) -> Iterator[tuple[str, str]]:
    for message in messages:
        if message.get("role") == "tool":
            yield str(message.get("tool_call_id")), content_text(message.get("content"))
        for block in _blocks(message):
            if block.get("type") == "tool_result":
                yield str(block.get("tool_use_id")), content_text(block.get("content"))


def _calls(messages: list[Json]) -> Iterator[tuple[str, tuple[str, Json]]]:
    for message in messages:
        for block in _blocks(message):
            if block.get("type") == "tool_use":
                yield str(block.get("id")), (str(block.get("name")), block.get("input") or {})
        for tool_call in message.get("tool_calls") or ():
            function = tool_call.get("function", {})
            arguments = json.loads(function.get("arguments") or "{}")
            yield str(tool_call.get("id")), (str(function.get("name")), arguments)


# What Pi's Anthropic adapter makes up when a call's result is missing from the list.
INVENTED_RESULT = "No result provided"


@dataclass(frozen=True, slots=True)
class Violation:
    """One refusal: request index, rule, and reason."""

    request: int
    rule: str
    message: str


Finding = tuple[str, str]
"""A rule's name and the provider's words for it."""


def check_list(body: Json, roles: Sequence[str]) -> Iterator[Finding]:
    """A message list must be one, not empty, and of these roles."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "empty_messages", "messages: at least one message is required"
        return
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in roles:
            yield "unknown_role", f"messages.{index}: role {role!r} is none of {', '.join(roles)}"


def check_invented_result(messages: list[Json]) -> Iterator[Finding]:
    """Results that the host's adapter made up for lost ones."""
    for index, message in enumerate(messages):
        if any(INVENTED_RESULT in text for text in _strings(message.get("content"))):
            yield "invented_result", f"messages.{index}: {INVENTED_RESULT!r} stands in the prompt"


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
