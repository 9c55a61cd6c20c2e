"""Where a text was in each prompt of a branch: in view, announced, folded, or never."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, starmap
from typing import Any, NamedTuple

from foredeck.accounting.cache import blocks_of, is_sent, texts_of
from foredeck.accounting.trace_spans import Occurrence, Span, Trace, Visibility
from foredeck.context.messages.items import args_display, message_text
from foredeck.context.messages.shape import Message
from foredeck.context.plan.codec import StoredPlan, unpack_op, unpack_says
from foredeck.context.plan.ops import MessageSpan, PieceRef
from foredeck.context.tools.reasons import because
from foredeck.lookup.prompts import system_at
from foredeck.model.call_values import CHARS_PER_TOKEN, OpRow
from foredeck.model.calls import CallRecord
from foredeck.model.documents import session_object_id
from foredeck.model.messages import load_message, load_messages, marked
from foredeck.model.records import ARCHIVED
from foredeck.store.protocol import portions
from foredeck.store.store import Store
from foredeck.timeline.branches import chain_to


def trace(
    store: Store,
    session: str,
    text: str,
    last: str | None,
    advance: Callable[[], None] = lambda: None,
) -> Trace:
    """Traces `text` through the prompts up to the record `last`. Raises `Missing` or `Corrupt`."""
    records = chain_to(store, last)
    head = store.head(session_object_id(session))
    fields = {} if head is None else head.fields
    walk = _Walk(store, text, str(fields.get("cwd") or ""))
    spans: list[Span] = []
    for portion in portions(records, PORTION):
        walk.load(portion)
        for record in portion:
            visibility = walk.go_on(record)
            alike = (record.session, visibility)
            before = spans[-1] if spans else None
            if (
                before is None
                or (before.session, before.visibility) != alike
                or not all(map(walk.holds, before.best))
            ):
                spans.append(walk.span(record, visibility))
            else:
                spans[-1].last, spans[-1].calls = record.ordinal, spans[-1].calls + 1
            if spans[-1].is_folded:
                spans[-1].cost += spans[-1].tokens * record.model.read
            advance()
    origin = str(fields.get("parent_session") or "")
    if any(record.session != session for record in records):
        origin = ""
    return Trace(session, text, len(records), spans, origin, len(walk.archived))


PORTION = 200
"""So many calls are read at once."""


class _Message(NamedTuple):
    message: Message
    stands: bool
    """Whether the text is in what the host sends of it."""
    chars: int


class _Walk:
    """Replays a branch call by call, and keeps where the text is."""

    # Prompts are not put together again, and no call costs more than what it has changed: the text
    # is looked for once in each message, and once in each rendering of it.

    def __init__(self, store: Store, text: str, cwd: str) -> None:
        self._store = store
        self._text = text
        self._cwd = cwd
        self._plan = StoredPlan()
        self._blobs: dict[str, bytes] = {}
        """What the calls of the portion need."""
        self._loaded: dict[str, Message] = {}
        """Messages of the portion, by their address."""
        self._messages: list[_Message] = []
        self._held: dict[int, Occurrence] = {}
        """What each message shows of the text, as if none were left out."""
        self._rendered: set[int] = set()
        """Messages that do not go out as the host has them."""
        self._at: dict[Visibility, set[int]] = {each: set() for each in Visibility}
        """Messages by what they show."""
        self._folded: list[int] = []
        """Messages whose content is folded, in order."""
        self._says: dict[int, list[Any]] = {}
        """Those of the plan that hold the text."""
        self._runs: dict[int, list[MessageSpan]] = {}
        """Covered messages, by the place of the covering text."""
        self._in_runs: set[int] = set()
        self._candidates: dict[int, dict[PieceRef, int]] = {}
        """Since which call the policy would fold each piece."""
        self._newest: CallRecord | None = None
        self._is_in_system = False
        self._away: Occurrence | None = None
        """Where the text was last, in chat that the host has compacted."""
        self._calls: dict[str, str] = {}
        """What each tool call was, by its id."""
        self._systems: dict[str, bool] = {}
        self.archived: set[str] = set()
        """The addresses of messages that were pruned."""

    def load(self, records: Sequence[CallRecord]) -> None:
        """Reads what the next calls need, in few reads of the store."""
        self._loaded = load_messages(
            {address for record in records for address in record.addresses}, self._store.blobs
        )
        packed = [row[2] for record in records for row in record.stored_rows.values()]
        packed += [record.fields.get("says") for record in records]
        self._blobs = self._store.blobs({digest for each in packed for digest in marked(each)})

    def go_on(self, record: CallRecord) -> Visibility:
        """The most that the next prompt shows of the text."""
        self._note_candidates(self._newest)
        self._newest = record
        omitted, in_runs = self._plan.omitted, self._in_runs
        self._plan.apply(record)
        self._take(record)
        self._look_at_says(record)
        left_out = set(record.omitted)
        # They are other sets only where something was taken out of them.
        if self._plan.omitted is not omitted:
            left_out |= self._plan.omitted ^ omitted
        if self._in_runs is not in_runs:
            left_out |= self._in_runs ^ in_runs
        self._leave_out(left_out)
        self._is_in_system = self._in_system(record)
        if self._is_in_system:
            return Visibility.IN_VIEW
        most = max((each for each, at in self._at.items() if at), default=Visibility.NEVER_SEEN)
        ours_say = Visibility.ANNOUNCED if self._says else Visibility.NEVER_SEEN
        away = Visibility.NEVER_SEEN if self._away is None else self._away.visibility
        return max(most, ours_say, away)

    def span(self, record: CallRecord, visibility: Visibility) -> Span:
        """A span that begins with the newest call."""
        places = sorted(self._places(), key=lambda place: -place.visibility)
        number, session = record.ordinal, record.session
        span = Span(number, number, visibility, session, places, policy=record.policy)
        if span.is_folded:
            span.reason, span.because = record.decision.reason, because(record, verbose=True)
            if self._folded:
                newest = self._folded[-1]
                chars = self._messages[newest].chars
                span.tokens = round(chars / (record.stats.rate or CHARS_PER_TOKEN))
                # As it was before this call: a rebase that folds something takes it out.
                pieces = self._candidates.get(newest, {})
                span.given_up = next(iter(pieces.values()), None)
        return span

    def holds(self, place: Occurrence) -> bool:
        """Whether a place of an earlier call shows the text as it did."""
        if place.message is None:
            return place in self._outside_messages()
        index = place.message - 1
        return index in self._held and self._in_prompt(index, self._held[index]) == place

    def _note_candidates(self, record: CallRecord | None) -> None:
        if record is None:
            return
        foldable = record.foldable
        for piece in starmap(PieceRef, foldable.added):
            self._candidates.setdefault(piece.message, {})[piece] = record.ordinal
        for piece in starmap(PieceRef, foldable.removed):
            self._candidates.get(piece.message, {}).pop(piece, None)

    def _take(self, record: CallRecord) -> None:
        last = self._held[max(self._held)] if self._held and not record.shared else None
        for index in range(record.shared, len(self._messages)):
            self._forget(index)
            self._candidates.pop(index, None)
        del self._messages[record.shared :]
        first = len(self._messages)
        for address in record.addresses:
            message = self._loaded.get(address)
            if message is None:
                # By itself, for its error, or for what is left of it.
                message = load_message(address, self._store.blob)
            texts = texts_of(message)
            stands = is_sent(message) and self._stands_in(texts)
            self._messages.append(_Message(message, stands, sum(map(len, texts))))
            if ARCHIVED in texts:
                self.archived.add(address)
        begins = self._messages[0].message if self._messages and not first else {}
        if last and begins.get("role") == "compactionSummary":
            self._away = Occurrence(Visibility.COMPACTED, None, last.what, last.handle)
        for message, _, _ in self._messages[first:]:
            self._note_calls(message)
        again = {*record.stored_rows, *range(first, len(self._messages))}
        if record.is_host:
            # A call without the engine went out as the host has it, from the first edit on.
            edited = record.decision.edited or 0
            again.update(index for index in self._rendered if index >= edited)
        for index in again:
            self._look(index)

    def _forget(self, index: int) -> None:
        self._rendered.discard(index)
        place = self._held.pop(index, None)
        if place is None:
            return
        for messages in self._at.values():
            messages.discard(index)
        if place.is_folded:
            del self._folded[bisect_left(self._folded, index)]

    def _look(self, index: int) -> None:
        self._forget(index)
        message, stands, _ = self._messages[index]
        stored = self._plan.stored_rows.get(index)
        row = None if stored is None else OpRow.from_row(stored)
        if row is not None and (row.packed is not None or row.is_gone):
            self._rendered.add(index)
        # A handle is foredeck's word: the content that it names stands without it, too.
        stands = stands or (row is not None and self._text == f"@{row.subject}")
        visibility = self._shown(message, row, stands)
        if visibility > Visibility.NEVER_SEEN:
            handle = None if row is None else row.subject
            place = Occurrence(visibility, index + 1, self._named(message), handle)
            self._held[index] = place
            self._at[self._in_prompt(index, place).visibility].add(index)
            if place.is_folded:
                insort(self._folded, index)

    def _in_prompt(self, index: int, place: Occurrence) -> Occurrence:
        left_out = index in self._plan.omitted and index not in self._in_runs
        return place._replace(visibility=Visibility.COMPACTED) if left_out else place

    def _leave_out(self, changed: set[int]) -> None:
        for index in changed & self._held.keys():
            for messages in self._at.values():
                messages.discard(index)
            self._at[self._in_prompt(index, self._held[index]).visibility].add(index)

    def _look_at_says(self, record: CallRecord) -> None:
        left, runs = self._plan.says, self._runs
        self._says = {i: ours for i, ours in self._says.items() if left.get(i) is ours}
        self._runs = {i: spans for i, spans in runs.items() if i in left}
        for index, ours in record.says.items():
            says = unpack_says(ours, self._blob)
            if self._stands_in(texts_of({"content": [b for say in says for b in say.blocks]})):
                self._says[index] = ours
            self._runs.pop(index, None)
            if spans := [s.covers for s in says if s.purpose == "calls" and s.covers]:
                self._runs[index] = spans
        if self._runs != runs:
            every = chain.from_iterable(self._runs.values())
            self._in_runs = {i for span in every for i in range(span.first, span.until)}

    def _blob(self, digest: str) -> bytes:
        return self._blobs.get(digest) or self._store.blob(digest)

    def _shown(self, message: Message, row: OpRow | None, held: bool) -> Visibility:
        hidden = Visibility.FOLDED if held else Visibility.NEVER_SEEN
        if row is None or row.packed is None:
            if row is not None and row.is_gone:
                return hidden
            return Visibility.IN_VIEW if held else hidden
        blocks = unpack_op(row, self._blob).blocks or []
        own = blocks_of(message)
        blocks_left = [own[block["keep"]] for block in blocks if "keep" in block and own]
        if self._stands_in(texts_of({"content": blocks_left})):
            return Visibility.IN_VIEW
        ours = [block for block in blocks if "keep" not in block]
        if not self._stands_in(texts_of({"content": ours})):
            return hidden
        shows = row.shows or (row.form == "folded" and not held) or row.form == "note"
        return Visibility.IN_VIEW if shows else Visibility.ANNOUNCED

    def _places(self) -> Iterator[Occurrence]:
        yield from self._outside_messages()
        for index in sorted(self._held, reverse=True):
            yield self._in_prompt(index, self._held[index])

    def _outside_messages(self) -> Iterator[Occurrence]:
        if self._is_in_system:
            yield Occurrence(Visibility.IN_VIEW, None, "the system prompt")
        for _ in self._says:
            yield Occurrence(Visibility.ANNOUNCED, None, "a message of foredeck's")
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

    def _note_calls(self, message: Message) -> None:
        for block in blocks_of(message):
            if block.get("type") == "toolCall":
                arguments = block.get("arguments")
                display = (
                    args_display(arguments, self._cwd) if isinstance(arguments, Mapping) else ""
                )
                self._calls[str(block.get("id"))] = f"{block.get('name')} {display}".strip()

    def _named(self, message: Message) -> str:
        match message.get("role"):
            case "toolResult":
                call = self._calls.get(str(message.get("toolCallId")))
                return f"result of {call or message.get('toolName')}"
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
