"""What the prompts of a branch were made of, in characters by kind, call by call.

Prompts are not put together again: a call changes few of its parent's messages, and only those
are looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from foredeck.accounting.shapes import chars_of, is_sent
from foredeck.context.intake.system import message_text
from foredeck.context.messages.items import value_chars
from foredeck.context.messages.parts import Part
from foredeck.context.state.call_log import BranchState, CallLog
from foredeck.hosts.pi.edits import apply_edits, to_messages
from foredeck.hosts.pi.messages import Message
from foredeck.hosts.pi.prompts import system_at
from foredeck.model.call_changes import PartRow
from foredeck.model.calls import CallRecord
from foredeck.model.messages import MessageKey, load_message, unpack
from foredeck.store.protocol import Head, Store


class Kind(StrEnum):
    """What a bit of a prompt is. In the order in which charts stack them."""

    SYSTEM = "system"
    """The system prompt and the definitions of the tools."""
    OURS = "ours"
    """Messages that foredeck adds: the head, summaries."""
    CHAT = "chat"
    """What people and the model said, tool calls included."""
    RESULTS = "results"
    """Tool results with their content."""
    FOLDED = "folded"
    """What is left of results and messages whose content was folded."""


_LINES = frozenset({"reference", "same", "note"})
"""Forms in which a line stands for the content."""


@dataclass(frozen=True, slots=True)
class Composition:
    """One prompt, in characters by kind."""

    record: CallRecord
    chars: Mapping[Kind, int]

    @property
    def total(self) -> int:
        """All characters of it."""
        return sum(self.chars.values())


def compositions(
    store: Store, heads: Sequence[Head], wanted: Collection[int]
) -> Iterator[Composition]:
    """The prompts of the calls `wanted` (by ordinal), in order. `heads`: the session's call
    documents, all of them.

    Raises `Missing` or `Corrupt` where something stored is gone or altered.
    """
    log = CallLog.load(heads)
    walk = _Measuring(store, log)
    ordered = sorted(heads, key=lambda head: int(head.fields["ordinal"]))
    for head in ordered:
        is_wanted = int(head.fields["ordinal"]) in wanted
        walk.go_to(head.id)
        if is_wanted:
            yield Composition(log.records[head.id], walk.chars(head))


@dataclass(slots=True)
class _Measured:
    """One message as it goes out."""

    key: MessageKey
    row: Sequence[Any] | None
    kind: Kind
    chars: int


@dataclass(slots=True)
class _Measuring:
    """Replays calls, and measures messages where somebody asks for a prompt."""

    store: Store
    log: CallLog
    _state: BranchState = field(default_factory=BranchState)
    _at: str | None = None
    _measured: dict[int, _Measured] = field(default_factory=dict)
    _around: dict[str, int] = field(default_factory=dict)
    """Characters of system prompts with tools, by content hash."""

    def go_to(self, id: str) -> None:
        """Apply a call, which need not continue the one before."""
        record = self.log.records[id]
        if record.parent == self._at and self._at is not None:
            self._state.apply(record)
        else:
            self._state = self.log.replay(id, self._load)
        self._at = id

    def _load(self, id: str) -> CallRecord | None:
        head = self.store.head(id)
        return None if head is None else CallRecord(head.fields)

    def chars(self, head: Head) -> dict[Kind, int]:
        """Of the prompt of the call that was gone to."""
        found: Counter[Kind] = Counter(dict.fromkeys(Kind, 0))
        found[Kind.SYSTEM] = self._system(head)
        state = self._state
        for index, key in enumerate(state.keys):
            if index not in state.drops:
                one = self._message(index, key, state.stored_rows.get(index))
                found[one.kind] += one.chars
        for index, ours in state.inserts.items():
            messages = to_messages(unpack(ours, self.store.blob), (), index)
            found[Kind.OURS] += sum(map(chars_of, messages))
        return dict(found)

    def _message(self, index: int, key: MessageKey, row: Sequence[Any] | None) -> _Measured:
        known = self._measured.get(index)
        if known is None or known.key != key or known.row is not row:
            known = self._measured[index] = self._measure(key, row)
        return known

    def _measure(self, key: MessageKey, row: Sequence[Any] | None) -> _Measured:
        message = load_message(key.address, self.store.blob)
        kind = Kind.RESULTS if _is_result(message) else Kind.CHAT
        if not is_sent(message):
            return _Measured(key, row, kind, 0)
        if row is not None:
            part = Part.from_row(PartRow.from_row(row), self.store.blob)
            if part.blocks is not None:
                message = apply_edits([message], {0: part.blocks}, {}, set())[0]
            if part.form in _LINES:
                kind = Kind.FOLDED
        return _Measured(key, row, kind, chars_of(message))

    def _system(self, head: Head) -> int:
        ref = CallRecord(head.fields).system
        if ref is None:
            return 0
        if ref.content_hash not in self._around:
            system, tools = system_at(self.store, head)
            texts = sum(len(message_text(message)) for message in system)
            self._around[ref.content_hash] = texts + value_chars(tools)
        return self._around[ref.content_hash]


def _is_result(message: Message) -> bool:
    return message.get("role") in ("toolResult", "bashExecution")
