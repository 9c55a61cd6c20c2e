"""What a task is called: `t-` and the first letters of a key that follows from its id.

Ids are UUIDv7: those of tasks that were made together begin alike, and differ only near their end.
So the key is made of the id's random bits, in letters that are not mistaken for one another; four
of them name a task, more only where two tasks of a project have the same four.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from foredeck.model.ids import uuid7

SHORTEST = 4
"""Letters that a name has at least."""
MARK = "t-"

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_KEY_LETTERS = 12
_MISREAD = str.maketrans("oil", "011")
_ATTEMPTS = 20


def key_of(id: str) -> str:
    """The key of a task's id: twelve letters."""
    bits = UUID(id).int
    return "".join(_LETTERS[bits >> 5 * place & 31] for place in range(_KEY_LETTERS))


def mint(is_taken: Callable[[str], bool], now_ms: int) -> str:
    """A new id whose first four letters no task has yet (`is_taken`), if there are any left."""
    for _ in range(_ATTEMPTS):
        id = uuid7(now_ms)
        if not is_taken(key_of(id)[:SHORTEST]):
            return id
    return id


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """More tasks than one have a name that begins so."""

    ids: tuple[str, ...]


class TaskNames:
    """The names of a project's tasks."""

    def __init__(self) -> None:
        self._by_start: dict[str, list[str]] = {}

    def add(self, id: str) -> None:
        """Take in a task; known ones change nothing."""
        group = self._by_start.setdefault(key_of(id)[:SHORTEST], [])
        if id not in group:
            group.append(id)

    def is_taken(self, start: str) -> bool:
        """Whether a task's key begins with these four letters."""
        return start in self._by_start

    def name(self, id: str) -> str:
        """The shortest name that means this task alone."""
        key = key_of(id)
        others = [key_of(o) for o in self._by_start.get(key[:SHORTEST], ()) if o != id]
        length = SHORTEST
        while length < _KEY_LETTERS and any(other[:length] == key[:length] for other in others):
            length += 1
        return MARK + key[:length]

    def find(self, text: str) -> str | Ambiguous | None:
        """The task that is meant by a name, the start of one, or an id."""
        asked = text.strip().lower()
        if len(asked) > _KEY_LETTERS + len(MARK):
            return asked if asked in self._all() else None
        start = asked.removeprefix(MARK).translate(_MISREAD)
        if not start:
            return None
        group = self._by_start.get(start[:SHORTEST], ()) if len(start) >= SHORTEST else self._all()
        found = [id for id in group if key_of(id).startswith(start)]
        return found[0] if len(found) == 1 else Ambiguous(tuple(sorted(found))) if found else None

    def _all(self) -> Iterable[str]:
        return [id for group in self._by_start.values() for id in group]
