"""The APIs that are spoken: what a request holds, and the same request with other messages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from foredeck.embedded.anthropic_messages import AnthropicMessages
from foredeck.embedded.chat_completions import ChatCompletions
from foredeck.embedded.format import MessageFormat
from foredeck.embedded.manager import ModelInfo
from foredeck.histories.records import session_id
from foredeck.model.messages import text_in
from foredeck.proxy.relays import AnthropicRelay, ChatRelay, Relay, ResponsesRelay
from foredeck.proxy.responses import Responses, gathered, taken_apart

Body = dict[str, Any]
_SESSION_HEADERS = ("x-claude-code-session-id", "thread-id", "session-id", "x-session-id")
"""Of Claude Code, Codex, and opencode."""
_AGENT_HEADER = "x-claude-code-agent-id"
_HOUR_S = 3600


class ModelApi(Protocol):
    """One API. `provider`: whose upstream has it, and the name of its default provider."""

    provider: str
    path: str
    """How the path of a request ends."""

    def format(self) -> MessageFormat:
        """How its messages are read."""

    def relay(self) -> Relay:
        """What passes the answers to one request on."""

    def messages(self, body: Body) -> list[dict[str, Any]]:
        """The messages of a request that foredeck can work on; empty where it is another one."""

    def system(self, body: Body) -> str:
        """The system prompt, where it stands apart."""

    def model(self, body: Body, headers: Mapping[str, str], window: int | None) -> ModelInfo:
        """The model that is asked."""

    def with_messages(
        self, body: Body, messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> Body:
        """The same request with these messages, and more tools."""


class AnthropicWire:
    """Anthropic's Messages API."""

    provider = "anthropic"
    path = "/messages"
    format = AnthropicMessages
    relay = AnthropicRelay

    def messages(self, body: Body) -> list[dict[str, Any]]:
        """See `ModelApi`."""
        return _chat(body)

    def system(self, body: Body) -> str:
        """See `ModelApi`."""
        return text_in(body.get("system") or "")

    def model(self, body: Body, headers: Mapping[str, str], window: int | None) -> ModelInfo:
        """See `ModelApi`."""
        long = "context-1m" in headers.get("anthropic-beta", "")
        kept = json.dumps(body.get("system")).count('"1h"')
        return ModelInfo(
            f"anthropic/{body.get('model')}",
            window or (1_000_000 if long else 200_000),
            cache_seconds=_HOUR_S if kept else None,
        )

    def with_messages(
        self, body: Body, messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> Body:
        """See `ModelApi`."""
        return {**body, "messages": messages, "tools": [*body["tools"], *tools]}


class ChatWire:
    """OpenAI's chat completions."""

    provider = "openai"
    path = "/chat/completions"
    format = ChatCompletions
    relay = ChatRelay

    def messages(self, body: Body) -> list[dict[str, Any]]:
        """See `ModelApi`."""
        return _chat(body) if body.get("n") in (None, 1) else []

    def system(self, body: Body) -> str:
        """See `ModelApi`: it stands among the messages."""
        del body
        return ""

    def model(self, body: Body, headers: Mapping[str, str], window: int | None) -> ModelInfo:
        """See `ModelApi`."""
        del headers
        return ModelInfo(f"openai/{body.get('model')}", window or 200_000)

    with_messages = AnthropicWire.with_messages


class ResponsesWire:
    """OpenAI's Responses API, where a request has the whole conversation."""

    provider = "openai"
    path = "/responses"
    format = Responses
    relay = ResponsesRelay

    def messages(self, body: Body) -> list[dict[str, Any]]:
        """See `ModelApi`."""
        items = body.get("input")
        elsewhere = body.get("previous_response_id") or body.get("conversation")
        if elsewhere or not isinstance(items, list) or not items:
            return []
        return gathered(items) if all(isinstance(item, dict) for item in items) else []

    def system(self, body: Body) -> str:
        """See `ModelApi`."""
        return str(body.get("instructions") or "")

    def model(self, body: Body, headers: Mapping[str, str], window: int | None) -> ModelInfo:
        """See `ModelApi`."""
        del headers
        return ModelInfo(f"openai/{body.get('model')}", window or 272_000)

    def with_messages(
        self, body: Body, messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> Body:
        """See `ModelApi`. One that declares its tools among its items gets no more of them."""
        changed = {**body, "input": taken_apart(messages)}
        return {**changed, "tools": [*body["tools"], *tools]} if body.get("tools") else changed


WIRES: Sequence[ModelApi] = (AnthropicWire(), ChatWire(), ResponsesWire())


def declares_tools(body: Body) -> bool:
    """Whether the model is given tools: a client asks for titles and summaries without any."""
    if isinstance(body.get("tools"), list) and body["tools"]:
        return True
    items = body.get("input")
    listed = items if isinstance(items, list) else []
    return any(isinstance(i, dict) and i.get("type") == "additional_tools" for i in listed)


def session_of(
    wire: ModelApi, body: Body, headers: Mapping[str, str], messages: Sequence[Mapping[str, Any]]
) -> str:
    """The conversation that a request belongs to: by what its client says, else by how it begins.
    A client's subagent has one of its own."""
    named = (session_id(headers.get(name)) for name in _SESSION_HEADERS)
    own = next(filter(None, named), None) or _in_metadata(body)
    if own is None:
        format = wire.format()
        said = (m for m in messages if not format.is_system(m))
        first = [format.to_engine(message, {}) for message, _ in zip(said, "1", strict=False)]
        begins = json.dumps([wire.system(body), first], sort_keys=True)
        return f"proxy-{hashlib.sha256(begins.encode()).hexdigest()[:24]}"
    agent = session_id(headers.get(_AGENT_HEADER))
    return own if agent is None else f"agent-{agent[:64]}.{own}"


def _in_metadata(body: Body) -> str | None:
    """The session that older versions of Claude Code name beside the user."""
    metadata = body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    if not isinstance(user, str):
        return session_id(body.get("prompt_cache_key"))
    return session_id(user.rpartition("_session_")[2]) if "_session_" in user else None


def _chat(body: Body) -> list[dict[str, Any]]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        return []
    return messages
