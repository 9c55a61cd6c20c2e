"""Entries in the store, as one user sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from foredeck.memory.entry import MemoryEntry, name_of_entry, named_by
from foredeck.memory.rules import MemoryCaps, MemoryRefused, too_many
from foredeck.memory.trust import TrustOf
from foredeck.memory.user import User
from foredeck.model.memory import MemoryDocument, MemoryState, Place
from foredeck.store.protocol import Head, Scalar, Store

_MOST_NAMED = 5


class MemoryReader:
    """Reads memory for one user.

    Global entries are this user's alone: on a shared store others have their own.
    """

    def __init__(self, store: Store, user: User, caps: MemoryCaps | None = None) -> None:
        self.store = store
        self.user = user
        self.caps = caps or MemoryCaps()
        self.trust = TrustOf(store, user)

    def get(self, id: str) -> MemoryEntry | None:
        """One entry, whoever's it is and in whatever state."""
        head = self.store.head(id)
        return None if head is None or head.type != "memory" else self.entry_of(head)

    def all(
        self, place: Place | None = None, state: MemoryState | None = None
    ) -> list[MemoryEntry]:
        """All entries of this user, the newest first."""
        where: dict[str, Scalar | None] = {"owner": self.user.id}
        where |= {} if place is None else {"place": place}
        where |= {} if state is None else {"state": state}
        return _newest_first(self._entries(self.store.query("memory", where)))

    def of_session(self, session: str, place: Place) -> list[MemoryEntry]:
        """What is kept with a session, the newest first; never more than the cap."""
        where: dict[str, Scalar | None] = {"session": session, "place": place, "state": "kept"}
        return self._capped(self.store.query("memory", where), place)

    def of_user(self, project: str | None = None) -> list[MemoryEntry]:
        """What is kept of the user, the newest first; never more than the cap. `project`: only
        what holds there.

        All of it came in by their word. What does not carry that was written by somebody else in
        their name, or before their key was lost, and is left out.
        """
        where: dict[str, Scalar | None] = {"owner": self.user.id, "place": "global"}
        found = self._capped(self.store.query("memory", {**where, "state": "kept"}), "global")
        stated = [entry for entry in found if entry.trust == "user-stated"]
        return [entry for entry in stated if project is None or holds_in(entry, project)]

    def proposals(self) -> list[MemoryEntry]:
        """What waits for the user's word, the newest first."""
        return self.all(state="proposed")

    def find(self, name: str) -> MemoryEntry:
        """The entry that a name means. Raises `MemoryRefused`."""
        ids = [entry.id for entry in self.all()]
        found = named_by(name, ids)
        if len(found) > 1:
            named = ", ".join(name_of_entry(id, ids) for id in found[:_MOST_NAMED])
            raise MemoryRefused(f"{name!r} means {len(found)} entries: {named}. Give more letters.")
        entry = self.get(found[0]) if found else None
        if entry is None:
            raise MemoryRefused(
                f"There is no entry {name!r}. `foredeck memory list --all` lists every one."
            )
        return entry

    def name(self, id: str) -> str:
        """What an entry is called."""
        return name_of_entry(id, [entry.id for entry in self.all()])

    def descendants(self, id: str) -> list[MemoryEntry]:
        """All entries that come from an object: made from it, or from what was made from it."""
        children: dict[str, list[MemoryEntry]] = {}
        for entry in self._entries(self.store.query("memory")):
            for parent in {*entry.parents, *filter(None, [entry.document.turn])}:
                children.setdefault(parent, []).append(entry)
        found: dict[str, MemoryEntry] = {}
        waiting = [id]
        while waiting:
            for entry in children.get(waiting.pop(), ()):
                if entry.id not in found and entry.id != id:
                    found[entry.id] = entry
                    waiting.append(entry.id)
        return _newest_first(found.values())

    def entry_of(self, head: Head) -> MemoryEntry:
        """The entry in a stored version."""
        document = MemoryDocument.model_validate(dict(head.fields))
        return MemoryEntry(document, head.token, self.trust.entry(document))

    def _capped(self, heads: Iterable[Head], place: Place) -> list[MemoryEntry]:
        # Two machines may have filled a place at the same time: what is over the cap is not there
        # for anybody, whether or not somebody has taken it out by now.
        entries = list(self._entries(heads))
        over = {entry.id for entry in too_many(entries, self.caps.of(place))}
        return _newest_first(entry for entry in entries if entry.id not in over)

    def _entries(self, heads: Iterable[Head]) -> Iterator[MemoryEntry]:
        return (self.entry_of(head) for head in heads)


def holds_in(entry: MemoryEntry, project: str) -> bool:
    """Whether a global entry holds in a project."""
    return entry.document.scope == "everywhere" or entry.document.project == project


def _newest_first(entries: Iterable[MemoryEntry]) -> list[MemoryEntry]:
    return sorted(entries, key=lambda entry: entry.age, reverse=True)
