"""What a host asks of the assembler and what it is answered, in neutral terms."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from foredeck.context.messages.items import Item, message_text
from foredeck.context.messages.wires import Wire, binds_in_every_turn, wire_of
from foredeck.context.plan.ops import Op, Say
from foredeck.context.provider_cache import CacheRule
from foredeck.context.rebase import Prices
from foredeck.model.call_values import CalledModel, PriceTier
from foredeck.model.lost_reasoning import BlockSpot
from foredeck.model.observations import AskedBy
from foredeck.model.records import VersionRef

OutcomeKind = Literal["applied", "fallback", "aborted", "off"]

InlineChanges = Literal["none", "text", "additions", "all"]
"""Which later changes of system prompt and tools a model takes at their place in the chat: none,
new instructions, these and new tools, or these and every change of a tool. Any other change goes
out before the chat, and nothing of an earlier prompt is cached any more."""


@dataclass(slots=True)
class PromptFrame:
    """What the host puts around the chat, and the object that keeps it."""

    messages: list[Any] = field(default_factory=list)
    """The system prompt, as messages of the host's: the first is the prompt, others change it."""
    tools: list[Any] = field(default_factory=list)
    """Definitions of the active tools."""
    chars: int = 0
    """Characters of both."""
    version: VersionRef | None = None
    """The version of the system prompt object that the next call goes out with."""
    hashes: dict[InlineChanges, str] = field(default_factory=dict)
    """What `before_chat` has worked out of these messages and tools."""

    def before_chat(self, inline: InlineChanges) -> str:
        """A hash of what goes out before the chat: equal hashes mean equal bytes."""
        if inline not in self.hashes:
            self.hashes[inline] = self._hash(inline)
        return self.hashes[inline]

    def _hash(self, inline: InlineChanges) -> str:
        changes = [message for message in self.messages if isinstance(message, dict)]
        # A host that names no tools in its system messages sends them before the chat.
        if inline in ("additions", "all") and not (changes and changes[0].get("toolsAdded")):
            inline = "text"
        texts = list(filter(None, map(message_text, changes[:1] if inline != "none" else changes)))
        if inline == "all":
            tools = changes[0]["toolsAdded"]
        elif inline == "additions":
            tools = _declared(changes[: _last_not_added(changes) + 1])
        else:
            tools = self.tools
        shown = [(tool["name"], tool.get("description"), tool.get("parameters")) for tool in tools]
        text = json.dumps([texts, shown], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _declared(changes: Sequence[Any]) -> list[Any]:
    """The tools that these system messages leave, in the order in which they were declared."""
    tools: dict[str, Any] = {}
    for change in changes:
        for tool in change.get("toolsRemoved") or ():
            tools.pop(tool["name"], None)
        tools |= {tool["name"]: tool for tool in change.get("toolsAdded") or ()}
    return list(tools.values())


def _last_not_added(changes: Sequence[Any]) -> int:
    """The last system message that takes a tool away or declares one again; 0 where none does."""
    declared: set[str] = set()
    last = 0
    for index, change in enumerate(changes):
        names = {tool["name"] for tool in change.get("toolsAdded") or ()}
        if change.get("toolsRemoved") or names & declared:
            last = index
        declared |= names
    return last


@dataclass(frozen=True, slots=True)
class Model:
    """The model that will be called, as far as it matters here."""

    provider: str
    id: str
    api: str = ""
    window: int | None = None
    reserve: int | None = None
    """Tokens of it that the host leaves free: it compacts by itself where a prompt leaves fewer.
    None where it does not."""
    cache_ttl_s: float | None = None
    prices: Prices = field(default_factory=Prices)
    cache: CacheRule = "prefix"
    """By which rule its provider keeps prompts."""
    marks: bool = False
    """Whether one more cache marker can be set in its requests."""
    threads: bool = False
    """Whether the host sends only what is new of a prompt, and the provider keeps the rest."""
    input_price: float = 0.0
    """What a million uncached input tokens cost, in the host's currency; 0: not known."""
    inline: InlineChanges = "none"
    tiers: tuple[PriceTier, ...] = ()
    assumed_reasoning: float = 0.0
    """Tokens of reasoning that each answer without any is taken to have, in a replay."""

    @property
    def is_bound(self) -> bool:
        """Whether it loses all of its reasoning behind the first byte that changes."""
        return binds_in_every_turn(self.id)

    @property
    def name(self) -> str:
        """What must stay the same for a cached prompt to be hit."""
        return f"{self.provider}/{self.id}"

    @property
    def called(self) -> CalledModel:
        """What a call record keeps of it."""
        return CalledModel(
            self.name,
            self.api,
            self.window,
            self.prices.read,
            self.prices.write,
            not self.prices.known,
            self.cache_ttl_s,
            self.input_price,
            self.tiers,
        )


@dataclass(frozen=True, slots=True)
class Zone:
    """The time zone of the host's clock."""

    name: str
    """`Europe/Berlin`; empty where the host has none."""
    offset_minutes: int
    """How far ahead of UTC it is at the time of the request."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a model call that the host has made, or wanted to."""

    kind: OutcomeKind
    call: int | None = None
    """Ordinal of the call of ours whose answer was in force."""
    edited: int = 0
    """How many messages went out as that answer had them."""
    ending: bool = False
    """Whether what stood after the last of the edited messages went out too."""
    messages: int = 0
    """How many messages the host's list had."""
    time_ms: int = 0
    reason: str = ""
    """Why it went out as it did; of an applied call, what another extension has changed in it."""
    dropped: tuple[BlockSpot, ...] = ()
    """Reasoning that its provider has kept from the model."""


@dataclass(slots=True)
class Request:
    """One call about to be made."""

    keep: int
    """How many messages are as in the request before; `items` are those after them."""
    items: list[Item]
    time_ms: int
    model: Model | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    system: list[Any] | None = None
    """The host's system messages, where they differ from those of the request before."""
    tools: list[Any] | None = None
    """Definitions of the active tools, by the same rule."""
    warmed_ms: int = 0
    """When the host last sent the newest request once more to keep the cache warm, if it did."""
    zone: Zone | None = None
    """None where the host has not said."""

    @property
    def wire(self) -> Wire:
        """What the provider lets pass."""
        return wire_of(self.model.api, self.model.provider) if self.model else Wire()


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """A compaction that the host has in mind."""

    by: AskedBy
    items: Sequence[Item]
    """The messages that it would give up."""
    previous: str
    """The summary before these messages; empty for none."""
    instructions: str
    """What the user wants of the summary."""
    tokens: int
    """The prompt as the host counts it."""
    reserve: int
    """Tokens that the host leaves for an answer."""
    new_chars: int
    """Characters of the messages that no request has brought yet."""
    time_ms: int
    model: Model | None


@dataclass(slots=True)
class Answer:
    """What goes out of the host's list from message `start` on. What earlier answers have said of
    the messages before it holds."""

    call: int
    start: int
    outgoing: list[Say | Op]
    """Operations on the host's messages in their order, with messages of ours between them."""
    marker: str = ""
    """Id of the tool call whose result is to get one more cache marker; empty for none."""
