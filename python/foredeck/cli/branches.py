"""The branches of a session, from its call records: which call lies on which."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foredeck.store.protocol import Head, Store

Fields = Mapping[str, Any]
_ASKED_CHARS = 60


@dataclass(slots=True)
class StoredBranch:
    """A way that a session has gone. `left_at` is the call of another branch that it went back
    to, None for one that starts at the beginning."""

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
        """The branch that a call lies on. Raises KeyError for a call that there is none of."""
        for branch in self.all:
            if call in branch.calls:
                return branch
        raise KeyError(call)

    def at(self, time_ms: int) -> StoredBranch:
        """The branch that the session was on when something was stored: that of the next call."""
        return self.of_call(min(bisect_left(self.times, time_ms) + 1, len(self.times)))

    @property
    def current(self) -> StoredBranch:
        """That of the newest call."""
        return self.of_call(len(self.times))


def branches_of(store: Store, session: str) -> Branches:
    """The branches of a session; none where it has made no call."""
    heads = sorted(
        store.query("call", {"session": session}), key=lambda head: head.fields["ordinal"]
    )
    tracer = _Tracer(store, {head.id: head for head in heads})
    for head in heads:
        tracer.add(head)
    return Branches(tuple(tracer.branches), tuple(head.time_ms for head in heads))


class _Tracer:
    """Puts calls on branches, one after the other."""

    def __init__(self, store: Store, heads: dict[str, Head]) -> None:
        self.branches: list[StoredBranch] = []
        self._store = store
        self._heads = heads
        self._on: dict[str, StoredBranch] = {}
        self._totals: dict[str, int] = {}
        self._newest: Head | None = None

    def add(self, head: Head) -> None:
        fields = head.fields
        parent = self._heads.get(fields["parent"] or "") or self._compacted(fields)
        self._totals[head.id] = fields["kept"] + len(fields["keys"])
        if parent is None or self._leaves(parent, fields):
            left_at = None if parent is None else int(parent.fields["ordinal"])
            asked = self._asked(fields["keys"])
            self.branches.append(StoredBranch(len(self.branches) + 1, left_at, asked=asked))
            self._on[head.id] = self.branches[-1]
        else:
            self._on[head.id] = self._on[parent.id]
        self._on[head.id].calls.append(int(fields["ordinal"]))
        self._newest = head

    def _compacted(self, fields: Fields) -> Head | None:
        """The call before, where the host has put a summary in the place of what it saw."""
        if not self._newest or not fields["keys"]:
            return None
        first = self._message(fields["keys"][0])
        return self._newest if first.get("role") == "compactionSummary" else None

    def _leaves(self, parent: Head, fields: Fields) -> bool:
        """Whether a call goes another way than its parent's branch has gone since."""
        if self._on[parent.id].calls[-1] != parent.fields["ordinal"]:
            return True
        if fields["parent"] is None:
            return False
        # Where an edit has replaced messages, others that stood behind them stand there still.
        gone = self._keys_after(parent, fields["kept"])
        return bool(gone) and gone.isdisjoint(map(_name, fields["keys"]))

    def _keys_after(self, head: Head | None, kept: int) -> set[str]:
        found: set[str] = set()
        end = self._totals[head.id] if head else 0
        while head is not None and end > kept:
            first, keys = head.fields["kept"], head.fields["keys"]
            found.update(_name(key) for key in keys[max(0, kept - first) : max(0, end - first)])
            end = min(end, first)
            head = self._heads.get(head.fields["parent"] or "")
        return found

    def _asked(self, keys: list[list[Any]]) -> str:
        for key in keys:
            message = self._message(key)
            if message.get("role") == "user":
                content = message.get("content")
                blocks = content if isinstance(content, list) else [{"text": content}]
                text = " ".join(str(block.get("text") or "") for block in blocks)
                return " ".join(text.split())[:_ASKED_CHARS]
        return ""

    def _message(self, key: list[Any]) -> dict[str, Any]:
        from foredeck.model.messages import load_message

        return load_message(key[1], self._store.blob)


def _name(key: list[Any]) -> str:
    """What names a message: its entry, or its content where the host has no entries."""
    entry, address = key
    return str(entry or address)
