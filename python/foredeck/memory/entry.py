"""An entry as it is worked with."""

from __future__ import annotations

from dataclasses import dataclass

from foredeck.memory.trust import Trust
from foredeck.model.ids import uuid7
from foredeck.model.memory import MemoryDocument
from foredeck.store.protocol import Token


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
    return f"memory:{uuid7(now_ms)}"
