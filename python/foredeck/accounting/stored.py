"""The calls of a stored session as they went out, with what was reported of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

from foredeck.accounting.cache import Shape, Shapes, is_sent
from foredeck.context.messages.items import PromptUsage, message_text, value_chars
from foredeck.context.messages.shape import Message, to_usage
from foredeck.context.plan.codec import StoredPlan, unpack_op, unpack_says
from foredeck.context.state.call_log import CallLog, load_record, reports_of
from foredeck.hosts.outgoing import rewritten, to_message
from foredeck.lookup.prompts import system_at
from foredeck.model.call_values import CalledModel, OpRow, ReportedUsage
from foredeck.model.calls import CallRecord
from foredeck.model.messages import MessageKey, load_message, load_messages
from foredeck.store.protocol import Head
from foredeck.store.store import Store


class Kind(StrEnum):
    """A part of a prompt, in the order in which charts stack them."""

    SYSTEM = "system"
    """The system prompt and the definitions of the tools."""
    OURS = "ours"
    """Messages that foredeck adds: the head, summaries."""
    CHAT = "chat"
    """What people and the model said, tool calls included."""
    RESULTS = "results"
    """Tool results with their content."""
    FOLDED = "folded"
    """What is left of folded content."""


_LINES = frozenset({"reference", "same", "note"})
"""Forms in which a line replaces content."""


@dataclass(frozen=True, slots=True)
class Around:
    """What precedes the messages, and changes of it among them."""

    hash: str
    chars: int
    """Of all of it."""


@dataclass(frozen=True, slots=True)
class StoredCall:
    """One call that went out."""

    record: CallRecord
    reported: ReportedUsage | None
    """The provider's count, from a later call's record."""
    keys: Sequence[MessageKey]
    messages: Sequence[Message]
    """The host's, by index."""
    sent: list[Shape]
    """What went out."""
    sent_at: Sequence[int]
    """The host's message for each that went out; for one of ours, the next."""
    chars: Mapping[Kind, int]
    """Characters of the prompt by kind."""
    around: Around
    mark: str
    """The call whose result carries one more cache marker; may be empty."""
    usage: PromptUsage | None
    rewritten: str = ""
    """What another extension changed in the request, if known."""

    @property
    def ordinal(self) -> int:
        """Its number in the session."""
        return self.record.ordinal

    @property
    def model(self) -> CalledModel:
        """The one that has answered."""
        return (self.reported and self.reported.model) or self.record.model


class StoredCalls:
    """The calls that went out, over all branches, oldest first.

    Iterating raises `Missing` or `Corrupt` if something stored is gone or altered.
    """

    # Each is read when it is asked for: together they would hold the length of every prompt.

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        self._session = session
        heads = store.query("call", {"session": session})
        self._heads = sorted(heads, key=lambda head: CallRecord(head.fields).ordinal)
        self._log = CallLog.load(heads)

    @property
    def newest(self) -> CallRecord | None:
        """The record of the newest call, whatever became of it."""
        return self._log.last

    @property
    def records(self) -> list[CallRecord]:
        return [self._log.records[head.id] for head in self._heads if self._is_sent(head)]

    def __iter__(self) -> Iterator[StoredCall]:
        turns = self._store.query("turn", {"session": self._session})
        usages, answers, last = _usages(turns), _answers(self._log), _last_answers(turns)
        reader = _CallReader(self._store, self._log)
        reports = reports_of(self._log.records.values())
        for head in self._heads:
            tip = CallRecord(head.fields).tip
            usage = usages.get(answers.get(tip) or last.get(head.id, ""))
            # Also one that did not go out: the next call goes on from its list.
            reader.go_to(head.id)
            if self._is_sent(head):
                yield reader.read(head, usage, reports.get(head.id))

    def _is_sent(self, head: Head) -> bool:
        return head.id not in self._log.unsent


def _usages(turns: Sequence[Head]) -> dict[str, PromptUsage]:
    usages: dict[str, PromptUsage] = {}
    for head in turns:
        usage = to_usage((head.fields.get("assistant_meta") or {}).get("usage"))
        if usage is not None and head.fields.get("assistant"):
            usages[head.fields["assistant"]] = usage
    return usages


def _answers(log: CallLog) -> dict[str, str]:
    """The message that follows a list in a later call, by the list's tip."""
    answers: dict[str, str] = {}
    for record in log.records.values():
        parent = log.records.get(record.parent or "")
        address = next(record.addresses, None)
        if parent is not None and address is not None and record.shared == parent.length:
            answers.setdefault(parent.tip, address)
    return answers


def _last_answers(turns: Sequence[Head]) -> dict[str, str]:
    pairs = ((head.fields.get("answers"), head.fields.get("assistant")) for head in turns)
    return {call: answer for call, answer in pairs if call and answer}


def _mark(record: CallRecord, messages: Sequence[Message]) -> str:
    end = record.cache.marked
    return str(messages[end - 1].get("toolCallId") or "") if end else ""


@dataclass(slots=True)
class _Listed:
    shapes: list[Shape] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    kinds: list[Kind] = field(default_factory=list)
    chars: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))
    _known: Shapes = field(default_factory=lambda: Shapes(keeps=True))

    def replace_from(self, start: int, listed: Iterable[tuple[int, Message, Kind]]) -> None:
        """Replaces the messages from index `start` on."""
        kept = bisect_left(self.at, start)
        outgoing = [each for each in listed if is_sent(each[1])]
        self._count(kept, -1)
        self.at[kept:] = [index for index, _, _ in outgoing]
        self.kinds[kept:] = [kind for _, _, kind in outgoing]
        self.shapes[kept:] = self._known.of([message for _, message, _ in outgoing])
        self._count(kept, 1)

    def _count(self, start: int, sign: int) -> None:
        # Only what a call changes is counted anew: there are thousands of calls, and of messages.
        for shape, kind in zip(self.shapes[start:], self.kinds[start:], strict=True):
            self.chars[kind] += sign * shape.chars


def _kind(message: Message, row: Sequence[Any] | None) -> Kind:
    if row is not None and OpRow.from_row(row).form in _LINES:
        return Kind.FOLDED
    is_result = message.get("role") in ("toolResult", "bashExecution")
    return Kind.RESULTS if is_result else Kind.CHAT


def _first_changed(record: CallRecord) -> int:
    """The first message that the call does not send like its parent."""
    changed = [record.shared, record.changed_from]
    if record.is_host:
        changed.append(record.decision.edited or 0)
    if record.first_rendered is not None:
        changed.append(record.first_rendered)
    return min(changed)


class _CallReader:
    """Replays records one after the other."""

    # There are thousands of calls with thousands of messages each. So each message is made once,
    # and of a prompt only what the call has changed.

    def __init__(self, store: Store, log: CallLog) -> None:
        self._store = store
        self._log = log
        self._state = StoredPlan()
        self._at: str | None = None
        self._changed_from = 0
        """Since the newest call that was read."""
        self._loaded: dict[str, Message] = {}
        """By address, messages of the host's."""
        self._edited: dict[MessageKey, tuple[Sequence[Any], Message]] = {}
        """A message's newest stored row, and the result."""
        self._inserted: dict[int, tuple[list[Any], list[Message]]] = {}
        self._messages: list[Message] = []
        """The host's list at the newest call that was read."""
        self._sent = _Listed()
        self._chars_around: dict[str, int] = {}
        """By the version of the system prompt."""
        self._before_chat = ""

    def go_to(self, id: str) -> None:
        """Applies a call, which need not continue the one before."""
        record = self._log.records[id]
        if record.parent == self._at:
            self._changed_from = min(self._changed_from, _first_changed(record))
            self._state.apply(record)
        else:
            self._changed_from = 0
            self._state = self._log.sent(id, partial(load_record, self._store))
        self._at = id

    def read(
        self, head: Head, usage: PromptUsage | None, reported: ReportedUsage | None = None
    ) -> StoredCall:
        """The call applied last, given the counts of its answer."""
        record = self._log.records[head.id]
        start = min(self._changed_from, len(self._messages))
        keys = list(self._state.keys)
        self._changed_from = len(keys)
        # At once: thousands of questions to the store would take longer than all else.
        missing = [key.address for key in keys[start:] if key.address not in self._loaded]
        self._loaded |= load_messages(missing, self._store.blobs)
        self._messages[start:] = [self._message(key.address) for key in keys[start:]]
        # Copies, here and below: the next call changes these lists.
        messages = list(self._messages)
        self._sent.replace_from(start, self._listed(keys, messages, start))
        around = self._what_is_around(head)
        return StoredCall(
            record,
            reported,
            keys,
            messages,
            list(self._sent.shapes),
            list(self._sent.at),
            self._sent.chars | {Kind.SYSTEM: around.chars},
            around,
            _mark(record, messages),
            usage,
            self._log.rewritten.get(head.id, ""),
        )

    def _listed(
        self, keys: Sequence[MessageKey], messages: Sequence[Message], start: int
    ) -> Iterator[tuple[int, Message, Kind]]:
        says, omitted, rows = self._state.says, self._state.omitted, self._state.stored_rows
        for index in range(start, len(messages) + 1):
            if index in says:
                yield from ((index, m, Kind.OURS) for m in self._ours(index, says[index]))
            if index < len(messages) and index not in omitted:
                message, row = messages[index], rows.get(index)
                yield index, self._as_sent(keys[index], message, row), _kind(message, row)

    def _ours(self, index: int, packed: list[Any]) -> list[Message]:
        cached = self._inserted.get(index)
        if cached is None or cached[0] is not packed:
            # Without the times that they would have: no cache and no model sees these.
            messages = [to_message(say) for say in unpack_says(packed, self._store.blob)]
            cached = self._inserted[index] = packed, messages
        return cached[1]

    def _as_sent(self, key: MessageKey, message: Message, row: Sequence[Any] | None) -> Message:
        if row is None:
            return message
        cached, edited = self._edited.get(key, (None, message))
        if cached is not row:
            blocks = unpack_op(OpRow.from_row(row), self._store.blob).blocks
            edited = message if blocks is None else rewritten(message, blocks)
            self._edited[key] = row, edited
        return edited

    def _message(self, address: str) -> Message:
        if address not in self._loaded:
            self._loaded[address] = load_message(address, self._store.blob)
        return self._loaded[address]

    def _what_is_around(self, head: Head) -> Around:
        record = CallRecord(head.fields)
        # Of a call that went out without the engine it is not known: most likely it is as before.
        self._before_chat = record.cache.around or self._before_chat
        if (pin := record.system) is None:
            return Around(self._before_chat, 0)
        hash = pin.content_hash
        if hash not in self._chars_around:
            system, tools = system_at(self._store, head)
            chars = sum(len(message_text(message)) for message in system) + value_chars(tools)
            self._chars_around[hash] = chars
        return Around(self._before_chat, self._chars_around[hash])


# What prompts are made of


@dataclass(frozen=True, slots=True)
class Composition:
    """One prompt, in characters by kind."""

    record: CallRecord
    chars: Mapping[Kind, int]


def compositions(
    store: Store, heads: Sequence[Head], wanted: Collection[int]
) -> Iterator[Composition]:
    """The prompts of the calls `wanted` (by ordinal), in order; `heads`: all of the session's call
    documents.

    Raises `Missing` or `Corrupt`.
    """
    reader = _CallReader(store, CallLog.load(heads))
    for head in sorted(heads, key=lambda head: CallRecord(head.fields).ordinal):
        reader.go_to(head.id)
        if CallRecord(head.fields).ordinal in wanted:
            call = reader.read(head, None)
            yield Composition(call.record, call.chars)
