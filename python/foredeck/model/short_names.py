"""What tasks and entries of memory are called: a mark and the first letters of a key, `t-k3f9`.

Ids are UUIDv7: those that were made together begin alike, and differ only near their end. So the
key is made of the id's random bits, in letters that are not mistaken for one another; four of them
are a name, more only where two ids have the same four.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from foredeck.model.ids import uuid7

TASK, ENTRY = "t-", "m-"
"""The marks of tasks, and of entries of memory."""

SHORTEST = 4
"""Letters that a name has at least."""

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_KEY_LETTERS = 12
_MISREAD = str.maketrans("oil", "011")
_ATTEMPTS = 20


def key_of(id: str) -> str:
    """The key of an id: twelve letters. An id that holds no UUID is its own key."""
    try:
        bits = UUID(id.rpartition(":")[2]).int
    except ValueError:
        return id
    return "".join(_LETTERS[bits >> 5 * place & 31] for place in range(_KEY_LETTERS))


class ShortNames:
    """The names of some ids, all with one mark."""

    def __init__(self, mark: str, ids: Iterable[str] = ()) -> None:
        self._mark = mark
        self._by_start: dict[str, list[str]] = {}
        self._ids: dict[str, None] = {}
        for id in ids:
            self.add(id)

    def add(self, id: str) -> None:
        """Take in an id; a known one changes nothing."""
        if id not in self._ids:
            self._ids[id] = None
            self._by_start.setdefault(key_of(id)[:SHORTEST], []).append(id)

    def mint(self, now_ms: int) -> str:
        """A new UUIDv7 that four letters name, if there are any left that name none."""
        for _ in range(_ATTEMPTS):
            id = uuid7(now_ms)
            if key_of(id)[:SHORTEST] not in self._by_start:
                return id
        return id

    def name(self, id: str) -> str:
        """The shortest name that means this id alone."""
        key = key_of(id)
        others = [key_of(o) for o in self._by_start.get(key[:SHORTEST], ()) if o != id]
        length = SHORTEST
        while length < len(key) and any(other[:length] == key[:length] for other in others):
            length += 1
        return self._mark + key[:length]

    def find(self, text: str) -> list[str]:
        """What may be meant by a name, the start of one, or an id."""
        asked = text.strip()
        for id in (asked, asked.lower()):
            if id in self._ids:
                return [id]
        start = asked.lower().removeprefix(self._mark).translate(_MISREAD)
        if not start:
            return []
        among = self._by_start.get(start[:SHORTEST], ()) if len(start) >= SHORTEST else self._ids
        return [id for id in among if key_of(id).startswith(start)]
