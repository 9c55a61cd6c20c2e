"""What may be changed in messages that a provider has answered, by wire.

An allow-list: a wire that is not named here has its arguments and its thinking left alone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wire:
    """What a provider lets pass."""

    arguments: bool = False
    """Arguments of earlier tool calls may be folded."""
    thinking: bool = False
    """Thinking of earlier user turns may be left out."""
    between_turns: bool = False
    """Either, but only where the newest message is the user's."""


_WIRES: dict[str, Wire] = {
    "anthropic-messages": Wire(arguments=True, thinking=True),
    "openai-completions": Wire(arguments=True, thinking=True),
    "openai-responses": Wire(arguments=True),
    "openai-codex-responses": Wire(arguments=True),
    "azure-openai-responses": Wire(arguments=True),
    "google-generative-ai": Wire(arguments=True),
    "google-gemini-cli": Wire(arguments=True),
    "google-vertex": Wire(arguments=True),
    "bedrock-converse-stream": Wire(arguments=True, thinking=True, between_turns=True),
}

_KEEPS_THINKING = frozenset({"openrouter"})
"""Providers whose reasoning details ride on the thinking block."""


def wire_of(api: str, provider: str = "") -> Wire:
    """The wire of a model record's `api`; one that allows nothing where it is not known."""
    wire = _WIRES.get(api, Wire())
    if provider in _KEEPS_THINKING:
        return Wire(wire.arguments, thinking=False, between_turns=wire.between_turns)
    return wire
