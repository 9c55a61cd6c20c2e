"""What may be changed in messages that a provider has answered, by wire and model.

`Wire` is an allow-list: of a wire that is not named here arguments and thinking stay as they are.

`SEALINGS` says which signed or encrypted reasoning is bound to the bytes before it. All of it has
to come back as it was issued. A provider may demand more: that what precedes it in its turn comes
back unchanged, too. A wire that the table does not name binds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

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


@dataclass(frozen=True, slots=True)
class Sealing:
    """What is known of the reasoning that one kind of model seals on one wire."""

    apis: tuple[str, ...]
    """Wires, as model records name them; empty for all."""
    models: tuple[str, ...]
    """What the id of the model holds, any of these; empty for all."""
    binds: bool
    """Whether bytes before it have to stay. Where not, a refusal teaches otherwise."""
    source: str
    """How that is known."""

    def covers(self, api: str, model: str) -> bool:
        """Whether the row is about this wire and model."""
        if self.apis and api not in self.apis:
            return False
        return not self.models or any(part in model.lower() for part in self.models)


RESPONSES_APIS = ("openai-responses", "openai-codex-responses", "azure-openai-responses")

SEALINGS = (
    Sealing(
        ("anthropic-messages",),
        (),
        binds=True,
        source="Anthropic's documentation of thinking: in a tool loop the blocks come back in "
        "their place in a turn that stands as it was, and newer models compare what precedes each "
        "block. Others that serve this wire are taken to do the same.",
    ),
    Sealing(
        (),
        ("claude",),
        binds=True,
        source="Bedrock, Vertex and routers that carry Claude hand on Anthropic's signatures, "
        "which Anthropic's models check.",
    ),
    Sealing(
        ("bedrock-converse-stream",),
        (),
        binds=True,
        source="Amazon's documentation of reasoning blocks calls the signature a hash of all "
        "messages of the conversation, and tampering with earlier ones an error.",
    ),
    Sealing(
        RESPONSES_APIS,
        (),
        binds=False,
        source="OpenAI's documentation of reasoning items: those since the last user message come "
        "back with the calls that they belong to. Reported refusals name the key or organization "
        "of an item, content that cannot be decrypted, or an item without the one that follows.",
    ),
    Sealing(
        ("google-generative-ai", "google-gemini-cli", "google-vertex"),
        (),
        binds=False,
        source="Google's documentation of thought signatures: each comes back in the part in which "
        "it was received, and a call of the current turn without one is refused. Reported refusals "
        "name a missing signature, or one that another route or key has made.",
    ),
    Sealing(
        ("openai-completions",),
        (),
        binds=False,
        source="OpenRouter's documentation of reasoning details: the sequence of them comes back "
        "as it was received. Nothing is said of the messages before it.",
    ),
)
"""The first row that covers a model decides."""


@lru_cache(maxsize=256)
def binds_by_table(api: str, model: str) -> bool:
    """Whether reasoning sealed by a model (`provider/id`, or the id) on a wire is taken to be bound
    to what precedes it, before any refusal."""
    return next((row.binds for row in SEALINGS if row.covers(api, model)), True)


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
