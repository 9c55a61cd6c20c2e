"""What may be changed in messages that a provider has answered, by wire and model.

`Wire` is an allow-list: of a wire that is not named here arguments and thinking stay as they are.

`binds_by_table` says which signed or encrypted reasoning is bound to the bytes before it. All of it
has to come back as it was issued. A provider may demand more: that what precedes it in its turn
comes back unchanged, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from foredeck.context.messages.items import Item


@dataclass(frozen=True, slots=True)
class Wire:
    """What a provider lets pass."""

    arguments: bool = False
    """Arguments of earlier tool calls may be folded."""
    thinking: bool = False
    """Thinking of earlier user turns may be left out."""
    between_turns: bool = False
    """Either, but only where the newest message is the user's."""

    @property
    def lets_calls_change(self) -> bool:
        """Whether arguments of earlier calls may be folded at any call."""
        return self.arguments and not self.between_turns


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


RESPONSES_APIS = ("openai-responses", "openai-codex-responses", "azure-openai-responses")

# Anthropic documents that in a tool loop thinking comes back in its place, in a turn that stands as
# it was; newer models compare what precedes each block. Bedrock, Vertex and routers that carry
# Claude hand on these signatures. Amazon calls the signature of a reasoning block a hash of all
# messages of the conversation. Of other wires than these here nothing is known: they bind.
_BIND_NOTHING = frozenset(
    {
        # OpenAI: reasoning items since the last user message come back with the calls that they
        # belong to. Reported refusals name the key or organization of an item, content that cannot
        # be decrypted, or an item without the one that follows.
        *RESPONSES_APIS,
        # Google: each thought signature comes back in the part in which it was received, and a call
        # of the current turn without one is refused. Reported refusals name a missing signature, or
        # one that another route or key has made.
        *("google-generative-ai", "google-gemini-cli", "google-vertex"),
        # OpenRouter: the sequence of reasoning details comes back as it was received; nothing is
        # said of the messages before it.
        "openai-completions",
    }
)
"""Wires where what precedes sealed reasoning may change, unless the model is Anthropic's. Where a
provider refuses that, the refusal teaches otherwise (`context/calls/feedback.py`)."""


_BOUND_IN_EVERY_TURN = re.compile(
    r"claude-(?:fable|mythos)-5[.-][12]|claude-(?:opus|sonnet|haiku)-5[.-]5|gpt-(?:6\.[2-9]|[7-9])"
)


def binds_in_every_turn(model: str) -> bool:
    """Whether a model (`provider/id`, or the id) loses all reasoning, of whichever turn, behind the
    first byte that changes. By Anthropic's "Preserved thinking" and OpenAI's "Preserved reasoning".
    """
    return bool(_BOUND_IN_EVERY_TURN.search(model.lower()))


def binds_by_table(api: str, model: str) -> bool:
    """Whether reasoning sealed by a model (`provider/id`, or the id) on a wire is taken to be bound
    to what precedes it, before any refusal."""
    return "claude" in model.lower() or api not in _BIND_NOTHING or binds_in_every_turn(model)


@dataclass(frozen=True, slots=True)
class SealRule:
    """What sealed reasoning binds at one call. The default: all of it."""

    free: bool = False
    """Whether bytes before sealed reasoning may change where the table does not forbid it."""

    def binds(self, item: Item) -> bool:
        """Whether what precedes a message in its turn has to stay because of it."""
        if not item.signed or item.unsent:
            return False
        return not self.free or binds_by_table(str(item.meta.get("api") or ""), item.model)
