"""The APIs that the proxy speaks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from foredeck.embedded.anthropic_messages import AnthropicMessages, markers_in
from foredeck.embedded.chat_completions import ChatCompletions
from foredeck.embedded.format import MessageFormat
from foredeck.embedded.manager import ModelInfo
from foredeck.embedded.responses import Responses, gathered, taken_apart
from foredeck.model.messages import text_in, texts_in
from foredeck_agents.histories.records import session_id
from foredeck_agents.proxy.api_relays import AnthropicRelay, ChatRelay, ResponsesRelay
from foredeck_agents.proxy.recognition import first_key
from foredeck_agents.proxy.relays import Relay

Body = dict[str, Any]
Tool = Mapping[str, Any]
_SESSION_HEADERS = ("x-claude-code-session-id", "thread-id", "session-id", "x-session-id")
"""Of Claude Code, Codex, and opencode."""
_AGENT_HEADER = "x-claude-code-agent-id"
_HARNESSES = {"claude-cli": "claude-code", "codex": "codex", "opencode": "opencode"}
"""Agents by a part of the name that they send."""
_HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class ModelApi:
    """An API with its messages in `messages`."""

    provider: str
    """Default provider, and its upstream's name."""
    path: str
    """How the path of a request ends."""
    format: Callable[[], MessageFormat]
    relay: Callable[[], Relay]
    window: int
    """The usual context window of its models, in tokens."""
    system_in: str = ""
    """The member with the system prompt, if apart."""
    listed: str = "messages"
    """The member that has the messages."""

    def messages(self, body: Body) -> list[dict[str, Any]]:
        """Messages that foredeck can work on, if any."""
        return _objects(body.get("messages")) if body.get("n") in (None, 1) else []

    def system(self, body: Body) -> str:
        return text_in(body.get(self.system_in) or "")

    def system_text(self, body: Body, messages: Sequence[Mapping[str, Any]]) -> str:
        format = self.format()
        before = takewhile(format.is_system, messages)
        return "\n".join([self.system(body), *(text_in(m.get("content")) for m in before)])

    def first(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The key of the first message that is no system prompt. Raises `UnknownMessage`."""
        format = self.format()
        said = next((m for m in messages if not format.is_system(m)), None)
        return first_key([] if said is None else format.to_engine(said, {}))

    def newest(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """What is said behind the model's last answer. Raises `UnknownMessage`."""
        format, said = self.format(), list[str]()
        for message in reversed(messages):
            last = format.to_engine(message, {})[-1]
            if last["role"] not in ("user", "custom"):
                return "\n\n".join(reversed(said))
            # An agent's own reminders may stand behind what it asks.
            said += texts_in(last.get("content"))[-1:]
        return ""

    def tools(self, body: Body) -> list[Tool]:
        """Tools for the model; requests for titles and summaries have none."""
        declared = body.get("tools")
        return declared if isinstance(declared, list) else []

    def model(self, body: Body, headers: Mapping[str, str], window: int | None) -> ModelInfo:
        """The model that is asked; `window` if the user has said it."""
        # Anthropic's beta of a window of a million tokens is asked for by a header, and how long a
        # prompt is kept by its cache markers.
        is_long = "context-1m" in headers.get("anthropic-beta", "")
        is_kept = '"1h"' in json.dumps(body.get("system"))
        return ModelInfo(
            f"{self.provider}/{body.get('model')}",
            window or (1_000_000 if is_long else self.window),
            cache_seconds=_HOUR_S if is_kept else None,
        )

    def markers_beside(self, body: Body) -> int:
        """Number of marked parts of a request beside its messages."""
        # Also the request itself: its marker goes to the last block.
        return sum(markers_in(body.get(name)) for name in ("tools", "system")) + bool(
            body.get("cache_control")
        )

    def with_messages(
        self, body: Body, messages: list[dict[str, Any]], tools: Sequence[Tool]
    ) -> Body:
        """The request with these messages, and more tools."""
        return {**body, "messages": messages, "tools": [*body["tools"], *tools]}


class _ResponsesApi(ModelApi):
    """OpenAI's Responses API, with the conversation in `input`."""

    def messages(self, body: Body) -> list[dict[str, Any]]:
        # Then the provider holds the beginning of the chat, and foredeck never sees it.
        is_elsewhere = body.get("previous_response_id") or body.get("conversation")
        return [] if is_elsewhere else gathered(_objects(body.get("input")))

    def tools(self, body: Body) -> list[Tool]:
        """See `ModelApi`; Codex may declare tools in an item."""
        declared = body.get("tools")
        listed = declared if isinstance(declared, list) else []
        more = [item.get("tools") for item in _objects(body.get("input")) if _has_tools(item)]
        return [*listed, *(tool for tools in more for tool in _flat(_objects(tools)))]

    def with_messages(
        self, body: Body, messages: list[dict[str, Any]], tools: Sequence[Tool]
    ) -> Body:
        items = taken_apart(messages)
        if body.get("tools"):
            return {**body, "input": items, "tools": [*body["tools"], *tools]}
        place = next((n for n, item in enumerate(items) if _has_tools(item)), None)
        if place is not None and tools:
            ours = {"type": "namespace", "name": "foredeck", "description": "", "tools": tools}
            items[place] = {**items[place], "tools": [*items[place]["tools"], ours]}
        return {**body, "input": items}


WIRES: Sequence[ModelApi] = (
    ModelApi(
        "anthropic", "/messages", AnthropicMessages, AnthropicRelay, 200_000, system_in="system"
    ),
    ModelApi("openai", "/chat/completions", ChatCompletions, ChatRelay, 200_000),
    _ResponsesApi(
        "openai",
        "/responses",
        Responses,
        ResponsesRelay,
        272_000,
        system_in="instructions",
        listed="input",
    ),
)


_ALIASES = {"codex": "openai"}


def wire_of(upstream: str, path: str) -> ModelApi | None:
    """The API of a request, if spoken."""
    provider = _ALIASES.get(upstream, upstream)
    return next((w for w in WIRES if w.provider == provider and path.endswith(w.path)), None)


def session_of(body: Body, headers: Mapping[str, str]) -> str | None:
    """A request's conversation, by its client; a subagent has its own."""
    named = (session_id(headers.get(name)) for name in _SESSION_HEADERS)
    own = next(filter(None, named), None) or _in_metadata(body)
    agent = session_id(headers.get(_AGENT_HEADER))
    return own if agent is None or own is None else f"agent-{agent[:64]}.{own}"


def harness_of(headers: Mapping[str, str]) -> str:
    """A request's agent, by its name; else `proxy`."""
    named = headers.get("user-agent", "").lower()
    return next((name for part, name in _HARNESSES.items() if part in named), "proxy")


def _in_metadata(body: Body) -> str | None:
    metadata = body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    if not isinstance(user, str):
        return session_id(body.get("prompt_cache_key"))
    return session_id(user.rpartition("_session_")[2]) if "_session_" in user else None


def _objects(value: Any) -> list[dict[str, Any]]:
    is_known = isinstance(value, list) and all(isinstance(each, dict) for each in value)
    return value if is_known else []


def _has_tools(item: Mapping[str, Any]) -> bool:
    return item.get("type") == "additional_tools" and bool(_objects(item.get("tools")))


def _flat(tools: Iterable[Tool]) -> Iterator[Tool]:
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from _flat(_objects(tool.get("tools")))
        else:
            yield tool
