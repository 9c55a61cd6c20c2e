"""A user at their desk: a store with sessions of theirs and of others, and a clock to move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from foredeck.memory.entry import MemoryCaps, MemoryRefused
from foredeck.memory.extracting import ExtractionMemory, ExtractionResult, FoundMemory
from foredeck.memory.keeping import Memory, NewMemory
from foredeck.memory.trust import User, session_statement
from foredeck.memory.user_acts import UserActs
from foredeck.model.documents import (
    Provenance,
)
from foredeck.model.messages import store_message
from foredeck.model.records import ExtractionDocument, TurnDocument, extraction_id, turn_id
from foredeck.store.clock import DAY_MS
from foredeck.store.protocol import Batch
from foredeck.store.store import Store
from store.documents import session_wrapper

START_MS = 1_777_777_200_000
OWN, PRIVATE, SUBAGENT, IMPORTED = "own", "private", "subagent", "imported"
ME, SOMEBODY = User(b"m" * 32), User(b"s" * 32)


@dataclass
class MemoryClock:
    """Milliseconds since 1970; each look at it is later."""

    now: int = START_MS

    def __call__(self) -> int:
        self.now += 1
        return self.now

    def pass_days(self, days: float) -> None:
        """Let time pass."""
        self.now += int(days * DAY_MS)


@dataclass
class Table:
    """One store, with the hands that reach it."""

    store: Store
    caps: MemoryCaps = field(default_factory=MemoryCaps)
    clock: MemoryClock = field(default_factory=MemoryClock)

    def __post_init__(self) -> None:
        self.user = UserActs(self.store, ME, self.caps, self.clock)
        self.model = Memory(self.store, ME, self.caps, self.clock, by=OWN)
        self._extracted = ExtractionMemory(self.store, ME, self.caps, self.clock, by=OWN)
        self._answers = 0
        self.other = UserActs(self.store, SOMEBODY, self.caps, self.clock)
        self.begin(OWN)
        self.begin(PRIVATE, private=True)
        self.begin(SUBAGENT, started_by=OWN)
        self.begin(IMPORTED, user=None)

    def begin(
        self,
        session: str,
        *,
        user: User | None = ME,
        private: bool | None = None,
        started_by: str | None = None,
    ) -> None:
        """A session with one turn, in which the user has said something."""
        blobs: dict[str, bytes] = {}
        said = store_message({"role": "user", "content": f"I prefer tabs, in {session}"}, blobs)
        by = Provenance(origin=session, generator="system")
        begun_by = None if user is None else user.vouch(session_statement(session))
        fields = {"started_by": started_by, "private": private, "provenance": by}
        wrapper = session_wrapper(session, begun_by=begun_by, **fields)
        turn = TurnDocument(id=turn_id(session, 1), session=session, user=said, provenance=by)
        self.store.commit(Batch([wrapper, turn.seal()], blobs))

    def replace(self, id: str, by: NewMemory) -> ExtractionResult:
        """A model has read something out that says the contrary of an entry."""
        self._answers += 1
        session = by.session or OWN
        record = ExtractionDocument(
            id=extraction_id(session, self._answers),
            session=session,
            first=1,
            last=self._answers,
            time_ms=1,
        )
        taken = self._extracted.take(record, [FoundMemory(by, ask=False, replaces=id)])
        assert taken is not None
        return taken


def new(fact: str = "Tabs, not spaces", **fields: Any) -> NewMemory:
    """An entry as extraction would make it, of what the model said in the user's own session."""
    known: dict[str, Any] = {"category": "fact", "session": OWN, "turn": turn_id(OWN, 1)}
    return NewMemory(fact=fact, **(known | fields))


def literal(fact: str = "The user prefers tabs", session: str = OWN, **fields: Any) -> NewMemory:
    """One of what the user said literally."""
    known: dict[str, Any] = {"category": "preference", "learned_from": "user_turn"}
    return new(fact, **(known | {"session": session, "turn": turn_id(session, 1)} | fields))


def refused(act: Callable[..., Any], *arguments: Any, **more: Any) -> str:
    """Why an act was refused; empty where it was not."""
    try:
        act(*arguments, **more)
    except MemoryRefused as refusal:
        return str(refusal)
    return ""
