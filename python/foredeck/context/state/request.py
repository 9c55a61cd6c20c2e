"""What a host asks, and the answer, in neutral terms; and what waits for the next call."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from foredeck.context.messages.items import Item, message_text
from foredeck.context.plan.ops import Op, Say
from foredeck.context.plan.wires import Wire, binds_in_every_turn, wire_of
from foredeck.context.provider_cache import CacheRule
from foredeck.context.rebase import Prices
from foredeck.model.call_values import CalledModel, PriceTier
from foredeck.model.observations import AskedBy
from foredeck.model.records import VersionRef
from foredeck.sources.snapshots import FileSnapshot
from foredeck.store.protocol import Token

OutcomeKind = Literal["applied", "fallback", "aborted", "off"]

InlineChanges = Literal["none", "text", "additions", "all"]
"""Changes of system prompt and tools that a model accepts within the chat; others go before it and
empty the cache."""


@dataclass(slots=True)
class PromptFrame:
    """What the host puts around the chat, and its object."""

    messages: list[Any] = field(default_factory=list)
    """The first is the prompt, others change it."""
    tools: list[Any] = field(default_factory=list)
    """Definitions of the active tools."""
    chars: int = 0
    """Characters of both."""
    version: VersionRef | None = None
    hashes: dict[InlineChanges, str] = field(default_factory=dict)
    """Cache of `before_chat`."""

    def before_chat(self, inline: InlineChanges) -> str:
        """A hash of what goes out before the chat."""
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
        definitions = [
            (tool["name"], tool.get("description"), tool.get("parameters")) for tool in tools
        ]
        text = json.dumps([texts, definitions], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _declared(changes: Sequence[Any]) -> list[Any]:
    tools: dict[str, Any] = {}
    for change in changes:
        for tool in change.get("toolsRemoved") or ():
            tools.pop(tool["name"], None)
        tools |= {tool["name"]: tool for tool in change.get("toolsAdded") or ()}
    return list(tools.values())


def _last_not_added(changes: Sequence[Any]) -> int:
    """The last system message that removes or redeclares a tool, or 0."""
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
    """The model about to be called."""

    provider: str
    id: str
    api: str = ""
    window: int | None = None
    reserve: int | None = None
    """Tokens below which the host compacts; None if it does not."""
    cache_ttl_s: float | None = None
    prices: Prices = field(default_factory=Prices)
    cache: CacheRule = "prefix"
    """How its provider keeps prompts."""
    marks: bool = False
    """Whether requests accept one more cache marker."""
    threads: bool = False
    """Whether the host sends only a prompt's new end."""
    input_price: float = 0.0
    """Of a million uncached tokens, in the host's currency; 0: unknown."""
    inline: InlineChanges = "none"
    tiers: tuple[PriceTier, ...] = ()
    bound: bool = False
    """It has lost reasoning because of what precedes it."""
    assumed_reasoning: float = 0.0
    """Replay: tokens for an answer without reasoning."""

    @property
    def is_bound(self) -> bool:
        """Whether it loses all reasoning behind the first changed byte."""
        return self.bound or binds_in_every_turn(self.id)

    @property
    def name(self) -> str:
        """The name that has to stay the same for a cache hit."""
        return f"{self.provider}/{self.id}"

    @property
    def called(self) -> CalledModel:
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
    """The host's time zone."""

    name: str
    """`Europe/Berlin`; empty if unknown."""
    offset_minutes: int
    """Minutes ahead of UTC then."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a model call."""

    kind: OutcomeKind
    call: int | None = None
    """Ordinal of the call whose answer was in force."""
    edited: int = 0
    """Messages that went out as that answer had them."""
    ending: bool = False
    """The answer's rest, behind them, went out too."""
    messages: int = 0
    """Length of the host's list."""
    time_ms: int = 0
    reason: str = ""
    """For an applied call, what another extension changed."""
    dropped: frozenset[str] = frozenset()
    """Seals of the reasoning that the provider kept from the model."""
    bound: bool = False
    """Whether because of what precedes it."""


@dataclass(slots=True)
class Request:
    """A call about to be made."""

    keep: int
    """Messages unchanged since the request before; `items` follow."""
    items: list[Item]
    time_ms: int
    model: Model | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    system: list[Any] | None = None
    """If changed since the request before."""
    tools: list[Any] | None = None
    warmed_ms: int = 0
    """When the host last renewed the cache."""
    zone: Zone | None = None
    """None if unknown."""

    @property
    def wire(self) -> Wire:
        """What the provider accepts."""
        return wire_of(self.model.api, self.model.provider) if self.model else Wire()


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """A compaction that the host plans."""

    by: AskedBy
    items: Sequence[Item]
    """The messages to be summarised."""
    previous: str
    """Empty for none."""
    instructions: str
    """The user's wishes for the summary."""
    tokens: int
    reserve: int
    """Tokens left free for an answer."""
    new_chars: int
    time_ms: int
    model: Model | None


@dataclass(slots=True)
class Answer:
    """What goes out from `start` on; earlier answers hold before it."""

    call: int
    start: int
    outgoing: list[Say | Op]
    marker: str = ""
    """The call whose result gets one more cache marker; empty for none."""


FileChange = Literal["changed", "deleted", "moved", "overwritten"]


@dataclass(slots=True)
class EarlyResult:
    """The files a tool touched, and the transaction with them.

    `stored`: the call's object was written, its turn a guess.
    """

    snapshots: list[FileSnapshot]
    token: Token | None = None
    full_output: str | None = None
    stored: bool = False


@dataclass(slots=True)
class PendingNotices:
    """Files changed from outside, until a prompt announces them."""

    changes: dict[int, FileChange] = field(default_factory=dict)
    said: dict[int, FileChange] = field(default_factory=dict)
    """Notices that the newest call announced."""

    def add(self, ordinal: int, change: FileChange) -> None:
        """Announces a change in place of an earlier one of the same file."""
        self.changes[ordinal] = change

    def withdraw(self, ordinal: int) -> None:
        """The model knows of the change, or made it."""
        self.changes.pop(ordinal, None)

    def take(self) -> dict[int, FileChange]:
        """Takes all pending notices, by handle."""
        self.said, self.changes = dict(sorted(self.changes.items())), {}
        return self.said

    def restore(self) -> None:
        """The newest call's notices are pending again: its prompt was refused."""
        # A change that came meanwhile is the newer one.
        self.changes = {**self.said, **self.changes}
        self.said = {}


@dataclass(frozen=True, slots=True)
class StoredInbox:
    """What the session document keeps of the inbox, by handle."""

    untold: Mapping[str, str] = field(default_factory=dict)
    behind: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Inbox:
    """What the next call takes into account: whoever notices something adds it, the call's steps
    remove it."""

    notices: PendingNotices = field(default_factory=PendingNotices)
    known_texts: dict[int, str] = field(default_factory=dict)
    """By handle, the hash of the text that the agent read or made of a file changed outside; for
    others the index holds."""
    stored: StoredInbox = StoredInbox()
    early_results: dict[str, EarlyResult] = field(default_factory=dict)
    """By call id, before a message list has the result."""
    stale: set[str] = field(default_factory=set)
    """Files whose newest version is from a tool's output; the disk may differ."""
    being_written: set[str] = field(default_factory=set)
    """Files to read again: a write may be under way."""
    refused: list[int] = field(default_factory=list)
    """Ordinals of refused calls without a record."""
    withdrawal_announced: bool = False
    """The user was told that something leaves the head after the turn."""
    user_messages: list[str] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)
    """Since the session opened."""
    notify: Callable[[str], None] = lambda _text: None
    """Tells the user something at once."""
    compaction: CompactionRequest | None = None
    """The host's plan, while another may write the summary."""

    @classmethod
    def of_document(cls, fields: Mapping[str, Any], notify: Callable[[str], None]) -> Inbox:
        stored = StoredInbox(fields.get("untold") or {}, fields.get("behind") or {})
        # A newer version of foredeck may have stored a kind that this one does not know.
        kinds: dict[str, FileChange] = {change: change for change in get_args(FileChange)}
        changes = {int(n): kinds.get(change, "changed") for n, change in stored.untold.items()}
        texts = {int(n): text_hash for n, text_hash in stored.behind.items()}
        return cls(PendingNotices(changes), texts, stored, notify=notify)

    def keep_known(self, ordinal: int, text_hash: str | None) -> None:
        # Of several changes in a row the agent knows what was there before the first.
        if text_hash is not None:
            self.known_texts.setdefault(ordinal, text_hash)

    def pop_stale(self) -> list[str]:
        stale, self.stale = sorted(self.stale), set()
        return stale

    def pop_compaction(self) -> CompactionRequest | None:
        request, self.compaction = self.compaction, None
        return request

    def pop_user_messages(self) -> list[str]:
        """Takes the messages to the user."""
        messages, self.user_messages = self.user_messages, []
        return messages


SummaryAuthor = Literal["foredeck", "model"]
