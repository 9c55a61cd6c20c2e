"""The branches of a session, from its call records: which call lies on which."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.model.calls import CallRecord, in_order
from foredeck.model.messages import MessageKey, load_message
from foredeck.store.protocol import Head, Store

_ASKED_CHARS = 60


@dataclass(slots=True)
class StoredBranch:
    """One branch of a session. `left_at`: the call of another branch after which it begins; None
    for one that starts with an empty chat."""

    number: int
    left_at: int | None
    calls: list[int] = field(default_factory=list)
    """Its own calls, by number, those before `left_at` not among them."""
    asked: str = ""
    """The beginning of the user's first message on it."""


@dataclass(frozen=True, slots=True)
class Branches:
    """All branches of a session in the order in which they began."""

    all: tuple[StoredBranch, ...]
    times: tuple[int, ...]
    """When each call was stored, in ms, call 1 first."""

    def of_call(self, call: int) -> StoredBranch:
        """The branch that a call is on. Raises `KeyError` where there is no such call."""
        for branch in self.all:
            if call in branch.calls:
                return branch
        raise KeyError(call)

    def at(self, time_ms: int) -> StoredBranch:
        """The branch that the session was on when something was stored: that of the next call."""
        return self.of_call(min(bisect_left(self.times, time_ms) + 1, len(self.times)))

    @property
    def current(self) -> StoredBranch:
        """The branch of the newest call."""
        return self.of_call(len(self.times))


def branches_of(store: Store, session: str, calls: Sequence[Head] | None = None) -> Branches:
    """The branches of a session; none where it has made no call. `calls`: the documents of all its
    calls, where they were read already."""
    heads = store.query("call", {"session": session}) if calls is None else calls
    stored_ms = {head.id: head.time_ms for head in heads}
    records = in_order(head.fields for head in heads)
    tracer = _Tracer(store)
    for record in records:
        tracer.add(record)
    return Branches(tuple(tracer.branches), tuple(stored_ms[record.id] for record in records))


class _Tracer:
    """Assigns calls to branches, one after the other."""

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
            asked = self._question(record.keys)
            self.branches.append(StoredBranch(len(self.branches) + 1, left_at, asked=asked))
            self._on[record.id] = self.branches[-1]
        else:
            self._on[record.id] = self._on[parent.id]
        self._on[record.id].calls.append(record.ordinal)
        self._records[record.id] = self._newest = record

    def _compacted(self, record: CallRecord) -> CallRecord | None:
        """The call before, where the host has put a summary in place of what it saw."""
        first = next(record.addresses, None)
        if self._newest is None or first is None:
            return None
        # A list that begins with a summary shares no message with the call before it.
        is_summary = self._message(first).get("role") == "compactionSummary"
        return self._newest if is_summary else None

    def _leaves(self, parent: CallRecord, record: CallRecord) -> bool:
        """Whether a call goes another way than its parent's branch has gone since."""
        if self._on[parent.id].calls[-1] != parent.ordinal:
            return True
        if record.parent is None:
            return False
        # Where an edit has replaced messages, others that came after them are there still.
        gone = self._names_after(parent, record.shared)
        return bool(gone) and gone.isdisjoint(map(_name, record.keys))

    def _names_after(self, record: CallRecord | None, kept: int) -> set[str]:
        """What names the messages that a call's list had from index `kept` on."""
        found: set[str] = set()
        end = record.length if record else 0
        while record is not None and end > kept:
            first, keys = record.shared, record.keys
            found.update(_name(key) for key in keys[max(0, kept - first) : max(0, end - first)])
            end = min(end, first)
            record = self._records.get(record.parent or "")
        return found

    def _question(self, keys: list[MessageKey]) -> str:
        """The beginning of the first of the user's messages."""
        for key in keys:
            message = self._message(key.address)
            if message.get("role") == "user":
                content = message.get("content")
                blocks = content if isinstance(content, list) else [{"text": content}]
                text = " ".join(str(block.get("text") or "") for block in blocks)
                return " ".join(text.split())[:_ASKED_CHARS]
        return ""

    def _message(self, address: str) -> dict[str, Any]:
        return load_message(address, self._store.blob)


def _name(key: MessageKey) -> str:
    """What names a message: its entry, or its content where the host has no entries."""
    return key.entry or key.address
