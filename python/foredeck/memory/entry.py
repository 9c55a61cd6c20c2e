"""An entry as it is worked with, and what people call it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from foredeck.memory.trust import Trust
from foredeck.model.ids import uuid7
from foredeck.model.memory import MemoryDocument
from foredeck.store.protocol import Token
from foredeck.tasks.names import key_of

MARK = "m-"
_SHORTEST = 4
_PREFIX = "memory:"
_MISREAD = str.maketrans("oil", "011")


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """The newest version of an entry, as one user sees it."""

    document: MemoryDocument
    token: Token
    trust: Trust

    @property
    def id(self) -> str:
        """Its id: `memory:` and a UUIDv7."""
        return self.document.id

    @property
    def parents(self) -> tuple[str, ...]:
        """Ids of what it was made from."""
        return tuple(self.document.provenance.parent_refs)

    @property
    def age(self) -> tuple[int, str]:
        """What entries are sorted by, the oldest first."""
        return self.document.learned_ms, self.document.id


def mint_id(now_ms: int) -> str:
    """A new entry's id."""
    return f"{_PREFIX}{uuid7(now_ms)}"


def key_of_entry(id: str) -> str:
    """The letters that name an entry. For an id that is not of ours: the id itself."""
    try:
        UUID(id.removeprefix(_PREFIX))
    except ValueError:
        return id
    return key_of(id.removeprefix(_PREFIX))


def name_of_entry(id: str, ids: Iterable[str]) -> str:
    """The shortest name, `m-7k2p`, that means this one of `ids` alone."""
    key = key_of_entry(id)
    others = [key_of_entry(other) for other in ids if other != id]
    length = _SHORTEST
    while length < len(key) and any(other[:length] == key[:length] for other in others):
        length += 1
    return MARK + key[:length]


def named_by(text: str, ids: Iterable[str]) -> list[str]:
    """Those of `ids` that may be meant by a name, the start of one, or an id."""
    asked = text.strip()
    start = asked.lower().removeprefix(MARK).translate(_MISREAD)
    known = list(ids)
    if asked in known or not start:
        return [asked] if asked in known else []
    return [id for id in known if key_of_entry(id).startswith(start)]
