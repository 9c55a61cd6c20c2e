"""A script of the model: the requests that it is asked, whichever API they came by, and its steps.

A script is a list of steps, one per request, or one function that is asked each time. A step is

- text (`"done"`), a block (`Text`, `Thinking`, `ToolCall`) or a list of blocks: one reply;
- a `Reply`, where the reply needs a stop reason, a delay, or a connection cut in the middle;
- a `Failure`: an error status of the provider;
- a function of the `ModelRequest` that returns one of these. It may look for handles in the
  prompt, and it may block: each request has a thread of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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


# Steps


@dataclass(frozen=True, slots=True)
class Text:
    """A text block."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """The server signs it; `redacted` sends an opaque payload."""

    text: str
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class SealedSummary:
    """OpenAI's answer to a `compaction_trigger`."""

    payload: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call. Without an `id` the server gives a fresh one."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None


Block = Text | Thinking | SealedSummary | ToolCall


@dataclass(frozen=True, slots=True)
class Reply:
    """One assistant message.

    `stop` in Anthropic's terms; `cut` drops the connection about halfway.
    """

    blocks: tuple[Block, ...]
    stop: str | None = None
    delay_s: float = 0.0
    cut: bool = False

    @property
    def stop_reason(self) -> str:
        """`stop`, or what follows from the blocks."""
        if self.stop is not None:
            return self.stop
        return "tool_use" if any(isinstance(b, ToolCall) for b in self.blocks) else "end_turn"


@dataclass(frozen=True, slots=True)
class Failure:
    """An error answer; `kind` is the provider's error type, `code` Anthropic's `error_code`."""

    status: int
    kind: str
    message: str
    retry_after_s: int | None = None
    code: str | None = None


StepOutcome = Reply | Failure
StepResult = StepOutcome | Block | str | Sequence[Block]
Step = StepResult | Callable[[ModelRequest], StepResult]
Script = Sequence[Step] | Callable[[ModelRequest], StepResult]


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(name, arguments)


def overflow(tokens: int, window: int) -> Failure:
    """The 400 with which Anthropic refuses a prompt longer than the window."""
    return Failure(
        400, "invalid_request_error", f"prompt is too long: {tokens} tokens > {window} maximum"
    )


def unverified(name: str) -> Failure:
    """The 400 with which OpenAI refuses encrypted reasoning that it cannot make sense of."""
    return Failure(
        400,
        "invalid_request_error",
        f"The encrypted content for item rs_{name} could not be verified. Reason: Encrypted "
        "content could not be decrypted or parsed.",
    )


def as_outcome(result: StepResult) -> StepOutcome:
    """A short form as the reply that it stands for."""
    if isinstance(result, Reply | Failure):
        return result
    if isinstance(result, str):
        return Reply((Text(result),))
    if isinstance(result, Text | Thinking | SealedSummary | ToolCall):
        return Reply((result,))
    return Reply(tuple(result))
