"""What people type to open a hit: `foredeck cat NAME`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from foredeck.model.ids import ENTRY, TASK, ShortNames
from foredeck.model.records import MemberDocument
from foredeck.search.searching import SearchHit
from foredeck.store.protocol import Store

SHORTEST_ID = 8


class HitNames:
    """`SESSION:@12 message 93`, with sessions as short as they can be; `t-k3f9`; `m-k3f9`.

    `sessions`: the ids of all that are stored.
    """

    def __init__(self, store: Store, sessions: Iterable[str]) -> None:
        self._store = store
        self._sessions = sorted(sessions)

    def of(self, hit: SearchHit) -> str:
        """The name; the object's id where no session has it in its index."""
        if hit.entry.type == "task":
            return self._tasks.name(hit.object)
        if hit.entry.type == "memory":
            return self._memories.name(hit.object)
        return self._object(hit) + hit.place

    @cached_property
    def _tasks(self) -> ShortNames:
        return ShortNames(TASK, (head.id for head in self._store.query("task")))

    @cached_property
    def _memories(self) -> ShortNames:
        return ShortNames(ENTRY, (head.id for head in self._store.query("memory")))

    def _object(self, hit: SearchHit) -> str:
        if hit.session is None:
            return hit.object
        named = {"object": hit.object, "session": hit.session}
        members = self._store.query("member", named, limit=1)
        if not members:
            return hit.object
        return f"{self._short(hit.session)}:@{members[0].view(MemberDocument).ordinal}"

    def _short(self, session: str) -> str:
        others = [other for other in self._sessions if other != session]
        shared = max((_shared(session, other) for other in others), default=0)
        return session[: max(SHORTEST_ID, shared + 1)]


def _shared(one: str, other: str) -> int:
    """How many characters two ids begin with in common."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
