"""A session's branches, from its call records."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.model.calls import CallRecord, in_order
from foredeck.model.messages import MessageKey, load_message
from foredeck.store.protocol import Head, Store
from foredeck.timeline.branches import users_words

_ASKED_CHARS = 60


@dataclass(slots=True)
class StoredBranch:
    """`left_at`: the call where it leaves another branch; None: an empty start."""

    number: int
    left_at: int | None
    calls: list[int] = field(default_factory=list)
    """Its own calls by number, after `left_at`."""
    asked: str = ""
    """The beginning of its first user message."""


@dataclass(frozen=True, slots=True)
class Branches:
    """A session's branches in order of their beginnings."""

    all: tuple[StoredBranch, ...]
    times: tuple[int, ...]
    """When each call was stored, in ms."""

    def of_call(self, call: int) -> StoredBranch:
        for branch in self.all:
            if call in branch.calls:
                return branch
        raise KeyError(call)

    def at(self, time_ms: int) -> StoredBranch:
        return self.of_call(min(bisect_left(self.times, time_ms) + 1, len(self.times)))

    @property
    def current(self) -> StoredBranch:
        """The newest call's branch."""
        return self.of_call(len(self.times))


def branches_of(store: Store, session: str, calls: Sequence[Head] | None = None) -> Branches:
    """A session's branches; none without calls."""
    heads = store.query("call", {"session": session}) if calls is None else calls
    stored_ms = {head.id: head.time_ms for head in heads}
    records = in_order(head.fields for head in heads)
    tracer = _Tracer(store)
    for record in records:
        tracer.add(record)
    return Branches(tuple(tracer.branches), tuple(stored_ms[record.id] for record in records))


class _Tracer:
    """Assigns calls to branches in order."""

    def __init__(self, store: Store) -> None:
        self.branches: list[StoredBranch] = []
        self._store = store
        self._records: dict[str, CallRecord] = {}
        self._on: dict[str, StoredBranch] = {}
        self._newest: CallRecord | None = None

    def add(self, record: CallRecord) -> None:
        """The next call."""
        parent = self._records.get(record.parent or "") or self._compacted(record)
        if parent is None or self._leaves(parent, record):
            left_at = None if parent is None else parent.ordinal
            beginning = self._question(record.keys)
            self.branches.append(StoredBranch(len(self.branches) + 1, left_at, asked=beginning))
            self._on[record.id] = self.branches[-1]
        else:
            self._on[record.id] = self._on[parent.id]
        self._on[record.id].calls.append(record.ordinal)
        self._records[record.id] = self._newest = record

    def _compacted(self, record: CallRecord) -> CallRecord | None:
        first = next(record.addresses, None)
        if self._newest is None or first is None:
            return None
        # A list that begins with a summary shares no message with the call before it.
        is_summary = self._message(first).get("role") == "compactionSummary"
        return self._newest if is_summary else None

    def _leaves(self, parent: CallRecord, record: CallRecord) -> bool:
        """Whether a call leaves its parent's branch."""
        if self._on[parent.id].calls[-1] != parent.ordinal:
            return True
        if record.parent is None:
            return False
        # Where an edit has replaced messages, others that came after them are there still.
        gone = self._names_after(parent, record.shared)
        return bool(gone) and gone.isdisjoint(map(_name, record.keys))

    def _names_after(self, record: CallRecord | None, kept: int) -> set[str]:
        names_seen: set[str] = set()
        end = record.length if record else 0
        while record is not None and end > kept:
            first, keys = record.shared, record.keys
            names_seen.update(
                _name(key) for key in keys[max(0, kept - first) : max(0, end - first)]
            )
            end = min(end, first)
            record = self._records.get(record.parent or "")
        return names_seen

    def _question(self, keys: list[MessageKey]) -> str:
        for key in keys:
            if text := users_words(self._message(key.address)):
                return text[:_ASKED_CHARS]
        return ""

    def _message(self, address: str) -> dict[str, Any]:
        return load_message(address, self._store.blob)


def _name(key: MessageKey) -> str:
    return key.entry or key.address
