"""Where a text stood in each prompt of a branch: in view, announced, folded, or never seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from foredeck.accounting.shapes import blocks_of, is_sent, texts_of
from foredeck.context.arguments import args_display
from foredeck.context.messages.items import message_text
from foredeck.context.messages.shape import Message
from foredeck.context.plan.codec import unpack_op, unpack_says
from foredeck.context.state.call_log import BranchState
from foredeck.lookup.prompts import system_at
from foredeck.model.call_values import CHARS_PER_TOKEN, REASONS, OpRow
from foredeck.model.calls import CallRecord
from foredeck.model.documents import session_object_id
from foredeck.model.figures import counted, some_of
from foredeck.model.messages import load_message
from foredeck.model.records import ARCHIVED
from foredeck.store.protocol import Store
from foredeck.timeline.branches import chain_to


class Visibility(IntEnum):
    """How much of a text a prompt shows; of several places the highest counts."""

    NEVER_SEEN = 0
    COMPACTED = 1
    """Left out with the chat around it, by foredeck or the host: a summary replaces it."""
    FOLDED = 2
    ANNOUNCED = 3
    """Its content is folded, but a line of foredeck's names the text: a digest, a summary."""
    IN_VIEW = 4

    @property
    def label(self) -> str:
        """As it is printed: `in view`."""
        return self.name.lower().replace("_", " ")


class Occurrence(NamedTuple):
    """One message that holds the text."""

    visibility: Visibility
    message: int | None
    """Its number in the host's list, from 1; None for the system prompt, or a message of ours."""
    what: str
    """What it is: `result of read src/a.py`."""
    handle: int | None = None
    """Of the object whose content it carries."""

    @property
    def is_folded(self) -> bool:
        """Whether the text is in content that was folded."""
        return self.visibility in (Visibility.FOLDED, Visibility.ANNOUNCED)


@dataclass(slots=True)
class Span:
    """Calls in a row whose prompts show the text alike.

    The fields from `reason` on are of text that is folded or announced.
    """

    first: int
    last: int
    visibility: Visibility
    places: list[Occurrence] = field(default_factory=list)
    """Where it is in the prompt of the first of them, the most visible first."""
    calls: int = 1
    reason: str | None = None
    """Why the prompt was rewritten at the first call, where it was (`Decision.reason`)."""
    policy: str = ""
    given_up: int | None = None
    """Since which call the policy would have folded the newest of the folded messages."""
    tokens: int = 0
    """How many tokens that message has."""
    cost: float = 0.0
    """What keeping it would have cost over these calls, read from the cache: in tokens of
    uncached input."""

    @property
    def is_folded(self) -> bool:
        """Whether the text stood in the chat, but its content was folded."""
        return self.visibility in (Visibility.FOLDED, Visibility.ANNOUNCED)


@dataclass(slots=True)
class Trace:
    """A text through the calls of one branch."""

    session: str
    text: str
    calls: int
    """How many calls the branch has."""
    spans: list[Span]
    archived: int = 0
    """How many of its messages have lost their text to `foredeck forget --texts`."""

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "session": self.session,
            "text": self.text,
            "calls": self.calls,
            "spans": [_span_json(span) for span in self.spans],
            "archived": self.archived,
        }


def trace(
    store: Store,
    session: str,
    text: str,
    last: str | None,
    advance: Callable[[], None] = lambda: None,
) -> Trace:
    """Where `text` stood in the prompts of a session's branch, up to the call record `last`.

    `advance` is called after every call. Raises `Missing` or `Corrupt` where something stored is
    gone or altered.
    """
    chain = chain_to(store, last)
    head = store.head(session_object_id(session))
    walk = _Walk(store, text, "" if head is None else str(head.fields.get("cwd") or ""))
    spans: list[Span] = []
    for record in chain:
        found = walk.go_on(record)
        newest = spans[-1] if spans else None
        if newest is not None and newest.visibility == found.visibility:
            newest.last, newest.calls = found.last, newest.calls + 1
            newest.cost += found.cost
        else:
            spans.append(found)
        advance()
    return Trace(session, text, len(chain), spans, len(walk.archived))


class _Walk:
    """Replays a branch call by call, and keeps where the text is."""

    # Prompts are not put together again: the walk looks again only at the messages that a call has
    # brought or rendered differently.

    def __init__(self, store: Store, text: str, cwd: str) -> None:
        self._store = store
        self._text = text
        self._cwd = cwd
        self._state = BranchState()
        self._messages: list[Message] = []
        self._ordinals: list[int] = []
        """Of the calls so far."""
        self._held: dict[int, Occurrence] = {}
        """What each message shows of the text, by its index; not those that show nothing."""
        self._away: Occurrence | None = None
        """Where the text was last, in chat that the host has compacted."""
        self._calls: dict[str, str] = {}
        """What each tool call was, by its id."""
        self._systems: dict[str, bool] = {}
        self.archived: set[str] = set()
        """The addresses of messages that were pruned."""

    def go_on(self, record: CallRecord) -> Span:
        """The next call, as a span of its own."""
        # As it was before this call: a rebase that folds something takes it out.
        given_up = self._state.candidates.copy()
        self._state.apply(record)
        self._ordinals.append(record.ordinal)
        self._take(record)
        places = sorted(self._places(record), key=lambda place: -place.visibility)
        visibility = places[0].visibility if places else Visibility.NEVER_SEEN
        span = Span(record.ordinal, record.ordinal, visibility, places, policy=record.policy)
        if span.is_folded:
            span.reason = record.decision.reason
            newest = max((i for i, p in self._held.items() if p.is_folded), default=None)
            # `at` counts the calls of the branch from 1; what is shown is the session's own number.
            since = (at for ref, at in given_up.items() if ref.message == newest)
            span.given_up = next((self._ordinals[at - 1] for at in since), None)
            span.tokens = self._tokens(newest, record)
            span.cost = span.tokens * record.model.read
        return span

    def _take(self, record: CallRecord) -> None:
        """Look at what the call has brought, and what it has rendered differently."""
        held = self._held[max(self._held)] if self._held else None
        del self._messages[record.shared :]
        self._held = {index: p for index, p in self._held.items() if index < record.shared}
        first = len(self._messages)
        for key in record.keys:
            message = load_message(key.address, self._store.blob)
            self._messages.append(message)
            if ARCHIVED in texts_of(message):
                self.archived.add(key.address)
        begins = self._messages[0] if self._messages and not first else {}
        if held and begins.get("role") == "compactionSummary":
            self._away = Occurrence(Visibility.COMPACTED, None, held.what, held.handle)
        for message in self._messages[first:]:
            self._note_calls(message)
        again: set[int] = set(record.stored_rows)
        if record.is_host:
            # A call without the engine went out as the host has it, from the first edit on.
            again.update(range(record.decision.edited or 0, first))
        for index in sorted(again | set(range(first, len(self._messages)))):
            self._look(index)

    def _look(self, index: int) -> None:
        self._held.pop(index, None)
        message = self._messages[index]
        held = is_sent(message) and self._stands_in(texts_of(message))
        stored = self._state.stored_rows.get(index)
        row = None if stored is None else OpRow.from_row(stored)
        visibility = self._shown(message, row, held)
        if visibility > Visibility.NEVER_SEEN:
            handle = None if row is None else row.subject
            self._held[index] = Occurrence(visibility, index + 1, self._named(message), handle)

    def _shown(self, message: Message, row: OpRow | None, held: bool) -> Visibility:
        """What a message shows of the text, given how it was rendered."""
        hidden = Visibility.FOLDED if held else Visibility.NEVER_SEEN
        if row is None or row.packed is None:
            if row is not None and row.is_gone:
                return hidden
            return Visibility.IN_VIEW if held else hidden
        blocks = unpack_op(row, self._store.blob).blocks or []
        own = blocks_of(message)
        kept = [own[block["keep"]] for block in blocks if "keep" in block and own]
        if self._stands_in(texts_of({"content": kept})):
            return Visibility.IN_VIEW
        ours = [block for block in blocks if "keep" not in block]
        if not self._stands_in(texts_of({"content": ours})):
            return hidden
        shows = row.shows or (row.form == "folded" and not held) or row.form == "note"
        return Visibility.IN_VIEW if shows else Visibility.ANNOUNCED

    def _places(self, record: CallRecord) -> Iterator[Occurrence]:
        if self._in_system(record):
            yield Occurrence(Visibility.IN_VIEW, None, "the system prompt")
        for ours in self._state.says.values():
            blocks = [b for say in unpack_says(ours, self._store.blob) for b in say.blocks]
            if self._stands_in(texts_of({"content": blocks})):
                yield Occurrence(Visibility.ANNOUNCED, None, "a message of foredeck's")
        for index in sorted(self._held, reverse=True):
            place = self._held[index]
            compacted = index in self._state.omitted
            yield place._replace(visibility=Visibility.COMPACTED) if compacted else place

        if self._away is not None:
            yield self._away

    def _in_system(self, record: CallRecord) -> bool:
        ref = record.system
        if ref is None:
            return False
        if ref.content_hash not in self._systems:
            head = self._store.head(record.id)
            system = [] if head is None else system_at(self._store, head)[0]
            self._systems[ref.content_hash] = self._stands_in(map(message_text, system))
        return self._systems[ref.content_hash]

    def _stands_in(self, texts: Iterable[str]) -> bool:
        return any(self._text in text for text in texts)

    def _tokens(self, index: int | None, record: CallRecord) -> int:
        """How many tokens a message has, by the rate of the call."""
        if index is None:
            return 0
        chars = sum(map(len, texts_of(self._messages[index])))
        return round(chars / (record.stats.rate or CHARS_PER_TOKEN))

    def _note_calls(self, message: Message) -> None:
        for block in blocks_of(message):
            if block.get("type") == "toolCall":
                arguments = block.get("arguments")
                shown = args_display(arguments, self._cwd) if isinstance(arguments, Mapping) else ""
                self._calls[str(block.get("id"))] = f"{block.get('name')} {shown}".strip()

    def _named(self, message: Message) -> str:
        """What a message is, in a few words."""
        match message.get("role"):
            case "toolResult":
                asked = self._calls.get(str(message.get("toolCallId")))
                return f"result of {asked or message.get('toolName')}"
            case "assistant":
                calls = [b for b in blocks_of(message) if b.get("type") == "toolCall"]
                holds = [b for b in calls if self._stands_in(texts_of({"content": [b]}))]
                if holds:
                    return f"arguments of {self._calls[str(holds[0].get('id'))]}"
                return "the model's own words"
            case "user":
                return "the user's message"
            case "compactionSummary":
                return "the summary of a compaction"
        return f"a message of the kind {message.get('role')}"


def _span_json(span: Span) -> dict[str, Any]:
    folded = {
        "reason": span.reason,
        "given_up_at": span.given_up,
        "policy": span.policy,
        "tokens": span.tokens,
        "keeping_cost": round(span.cost, 1),
    }
    return {
        "first": span.first,
        "last": span.last,
        "calls": span.calls,
        "state": span.visibility.label,
        "places": [_place_json(place) for place in span.places],
        **(folded if span.is_folded else {}),
    }


def _place_json(place: Occurrence) -> dict[str, Any]:
    handle = None if place.handle is None else f"@{place.handle}"
    return {
        "state": place.visibility.label,
        "message": place.message,
        "what": place.what,
        "handle": handle,
    }


# In words


SHOWN = 3
"""How many places of a span are named."""


def rows_of(found: Trace) -> list[tuple[str, str, str]]:
    """The rows of a table: calls, state, and where, or why it is not there."""
    rows: list[tuple[str, str, str]] = []
    for span in found.spans:
        calls = str(span.first) if span.first == span.last else f"{span.first}-{span.last}"
        rows.append((calls, span.visibility.label, _where(span)))
        rows.extend(("", "", text) for text in _why(span))
    if found.archived:
        messages = counted(found.archived, "message")
        rows.append(("", "", f"what {messages} said was pruned, and is not looked through"))
    return rows


def text_of(found: Trace) -> str:
    """The same for a place where columns do not line up."""
    return "\n".join(
        f"calls {calls}: {state}{where and '; '}{where}" if calls else f"    {where}"
        for calls, state, where in rows_of(found)
    )


def _where(span: Span) -> str:
    best = [place for place in span.places if place.visibility == span.visibility]
    return some_of([_place(place) for place in best], SHOWN, "; ")


def _place(place: Occurrence) -> str:
    handle = "" if place.handle is None else f" (@{place.handle})"
    at = "" if place.message is None else f"message {place.message}: "
    return f"{at}{place.what}{handle}"


def _why(span: Span) -> Iterator[str]:
    if not span.is_folded:
        return
    if span.reason:
        yield f"rewritten at call {span.first}: {REASONS.get(span.reason, span.reason)}"
    if span.given_up is not None:
        yield f"policy {span.policy} had given up the newest of these at call {span.given_up}"
    calls = counted(span.calls, "call")
    yield f"keeping its {span.tokens:,} tokens for {calls} would have cost {span.cost:,.0f}"
