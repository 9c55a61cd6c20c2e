"""Where a long session stood at one of its calls, kept between processes.

All of it follows from the call records, which stay the truth: whoever has no checkpoint, or one
that is of another store, reads every record instead. With one a resumed session of ten thousand
calls reads those few that came after it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from foredeck.context.state.branch_state import BranchState
from foredeck.model.calls import CallRecord
from foredeck.model.canonical import hash_of_modules
from foredeck.store.protocol import Store

DECIDED_BY = (
    *("context/cache/cached.py", "context/plan/codec.py", "context/plan/ops.py"),
    *("context/state/branch_state.py", "context/state/call_log.py", "context/state/checkpoint.py"),
    *("context/state/sets.py", "model/call_values.py", "model/calls.py"),
    *("model/canonical.py", "model/messages.py"),
)
"""The modules that decide what follows from records."""


@dataclass(frozen=True, slots=True)
class LogCheckpoint:
    """What follows from the records of a session up to its newest call."""

    call: str
    """Id of the record of that call."""
    ordinal: int
    token: str
    """Of the transaction that stored it: another history of the session has another one."""
    store: list[Any]
    """Which file it was stored in, and how often versions came in late there (`Lineage`)."""
    state: Mapping[str, Any]
    """Of the branch that ends with the call (`BranchState.to_stored`)."""
    log: Mapping[str, Any]
    """What is searched in all calls of the session, whichever branch they are on."""

    def record_in(self, store: Store) -> CallRecord | None:
        """The record of its call; None where it is not of this store, or not as it is now."""
        head = store.head(self.call) if lineage(store) == self.store else None
        return CallRecord(head.fields) if head is not None and head.token == self.token else None

    def branch_state(self, last: CallRecord) -> BranchState:
        """The state after its call. `last`: the record of that."""
        return BranchState.from_stored(self.state, last)

    def to_bytes(self) -> bytes:
        """As a file holds it."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps({"format": hash_of_modules(DECIDED_BY), **fields}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | None:
        """The inverse of `to_bytes`; None for what other code has written."""
        try:
            fields = json.loads(data)
            if fields.pop("format") != hash_of_modules(DECIDED_BY):
                return None
            return cls(**fields)
        except (ValueError, TypeError, KeyError, AttributeError, OSError):
            return None


def lineage(store: Store) -> list[Any] | None:
    """Which file a store works with, as a checkpoint names it; None where it is not in a file."""
    local = store.local
    return None if local is None else list(asdict(local.lineage()).values())
