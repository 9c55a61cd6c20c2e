"""What the prompts of a branch were made of, in characters by kind, call by call."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

from foredeck.accounting.shapes import chars_of, is_sent
from foredeck.context.messages.items import block_chars, message_text, value_chars
from foredeck.context.messages.shape import Message
from foredeck.context.plan.codec import StoredPlan, unpack_says
from foredeck.context.plan.ops import apply_recipe
from foredeck.context.state.call_log import CallLog, load_record
from foredeck.hosts.outgoing import to_message
from foredeck.lookup.prompts import system_at
from foredeck.model.call_values import PartRow
from foredeck.model.calls import CallRecord
from foredeck.model.canonical import decode_text
from foredeck.model.messages import MessageKey, marked, unpack
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
"""Forms in which a line replaces the content."""


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
    ordered = sorted(heads, key=lambda head: CallRecord(head.fields).ordinal)
    for head in ordered:
        is_wanted = CallRecord(head.fields).ordinal in wanted
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
    """Replays calls, and measures messages where a prompt is asked for."""

    # Prompts are not put together again: a call changes few of its parent's messages, and only
    # those are read.

    store: Store
    log: CallLog
    _state: StoredPlan = field(default_factory=StoredPlan)
    _at: str | None = None
    _counted: dict[int, _Measured] = field(default_factory=dict)
    """The messages of the prompt that `_totals` is of, by index."""
    _totals: Counter[Kind] = field(default_factory=Counter)
    _inserts: dict[int, tuple[list[Any], int]] = field(default_factory=dict)
    """Messages of ours as they are stored, with their characters, by index."""
    _touched: set[int] | None = None
    """Messages that may go out otherwise than they are counted; None: any of them."""
    _around: dict[str, int] = field(default_factory=dict)
    """Characters of system prompts with tools, by content hash."""
    _fetched: dict[str, bytes] = field(default_factory=dict)
    _ready: dict[int, tuple[Kind, Any]] = field(default_factory=dict)
    """What goes out of messages that are about to be measured, by index."""

    def go_to(self, id: str) -> None:
        """Apply a call, which need not continue the one before."""
        record, state = self.log.records[id], self._state
        if record.parent is None or record.parent != self._at:
            self._state, self._touched = self.log.sent(id, partial(load_record, self.store)), None
        else:
            length, drops = (
                len(state.keys),
                set(state.drops) if self._touched is not None else set(),
            )
            state.apply(record)
            if self._touched is not None:
                self._touched |= self._changed(record, length) | (drops ^ state.drops)
        self._at = id

    def _changed(self, record: CallRecord, length: int) -> set[int]:
        """What a call has changed of a list that had `length` messages, but for drops."""
        changed = {*range(record.kept, max(length, record.length)), *record.stored_rows}
        if record.is_host:
            changed.update(range(record.decision.edited or 0, record.length))
        return changed

    def chars(self, head: Head) -> dict[Kind, int]:
        """Of the prompt of the call that was gone to."""
        state, touched = self._state, self._touched
        if touched is None:
            self._fetch_all()
        for index in {*self._counted, *range(len(state.keys))} if touched is None else touched:
            self._count(index)
        ours = sum(self._inserted(index, packed) for index, packed in state.inserts.items())
        self._touched, self._fetched = set(), {}
        found = {kind: self._totals[kind] for kind in Kind}
        return found | {Kind.SYSTEM: self._system(head), Kind.OURS: ours}

    def _count(self, index: int) -> None:
        state, known = self._state, self._counted.pop(index, None)
        if known is not None:
            self._totals[known.kind] -= known.chars
        if index >= len(state.keys) or index in state.drops:
            return
        key, row = state.keys[index], state.stored_rows.get(index)
        if known is None or known.key != key or known.row is not row:
            known = self._measure(key, row, self._ready.pop(index, None))
        self._counted[index] = known
        self._totals[known.kind] += known.chars

    def _inserted(self, index: int, packed: list[Any]) -> int:
        """Characters of messages of ours. Most are there unchanged at the next call."""
        known = self._inserts.get(index)
        if known is None or known[0] is not packed:
            messages = map(to_message, unpack_says(packed, self._blob))
            known = self._inserts[index] = packed, sum(map(chars_of, messages))
        return known[1]

    def _fetch_all(self) -> None:
        """Have at hand what measuring the whole prompt takes."""
        # At once: thousands of questions to the store would take longer than all else.
        state = self._state
        sent = [i for i in range(len(state.keys)) if i not in state.drops]
        self._fetched = self.store.blobs(state.keys[i].address for i in sent)
        self._ready = {i: self._outgoing(state.keys[i], state.stored_rows.get(i)) for i in sent}
        self._fetched |= self.store.blobs(
            digest for _, value in self._ready.values() for digest in _texts(value)
        )
        self._fetched |= self.store.blobs(marked(list(state.inserts.values())))

    def _blob(self, digest: str) -> bytes:
        return self._fetched.get(digest) or self.store.blob(digest)

    def _measure(
        self, key: MessageKey, row: Sequence[Any] | None, ready: tuple[Kind, Any] | None
    ) -> _Measured:
        kind, value = ready or self._outgoing(key, row)
        if isinstance(value, list):
            chars = sum(
                # The bytes of an image are not needed for its size.
                block_chars(block if block.get("type") == "image" else unpack(block, self._blob))
                for block in value
            )
        else:
            chars = 0 if value is None else chars_of(unpack(value, self._blob))
        return _Measured(key, row, kind, chars)

    def _outgoing(self, key: MessageKey, row: Sequence[Any] | None) -> tuple[Kind, Any]:
        """What goes out of a message, long texts still packed: blocks, or the message where it has
        none; None where nothing does."""
        # Packed, so that texts which were folded are never read.
        packed = self._packed(key.address)
        kind = Kind.RESULTS if _is_result(packed) else Kind.CHAT
        if not is_sent(packed):
            return kind, None
        part = None if row is None else PartRow.from_row(row)
        if part is not None and part.form in _LINES:
            kind = Kind.FOLDED
        content = packed.get("content")
        recipe = None if part is None else part.packed
        if recipe is not None:
            return kind, apply_recipe(recipe, _blocks(content))
        return kind, content if isinstance(content, list) else packed

    def _packed(self, address: str) -> Message:
        packed: Message = json.loads(decode_text(self._blob(address)))
        return packed

    def _system(self, head: Head) -> int:
        ref = CallRecord(head.fields).system
        if ref is None:
            return 0
        if ref.content_hash not in self._around:
            system, tools = system_at(self.store, head)
            texts = sum(len(message_text(message)) for message in system)
            self._around[ref.content_hash] = texts + value_chars(tools)
        return self._around[ref.content_hash]


def _blocks(content: Any) -> list[Any]:
    """The content of a message as blocks; a long text may still be packed."""
    if content is None or isinstance(content, list):
        return content or []
    return [{"type": "text", "text": content}]


def _texts(value: Any) -> Iterator[str]:
    """The hashes of the texts that are missing in what is packed."""
    for block in value if isinstance(value, list) else () if value is None else (value,):
        if block.get("type") != "image":
            yield from marked(block)


def _is_result(message: Message) -> bool:
    return message.get("role") in ("toolResult", "bashExecution")
