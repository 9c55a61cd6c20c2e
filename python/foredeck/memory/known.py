"""What is known already beside a new fact: kept, waiting for the user's word, or unwanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from foredeck.memory.entry import MemoryEntry
from foredeck.memory.extracting.likeness import KnownFact
from foredeck.memory.reading import MemoryReader, holds_in
from foredeck.model.memory import MemoryState

_AS: Mapping[MemoryState, str] = {
    "kept": "kept",
    "proposed": "waiting",
    "refused": "refused",
    "deleted": "refused",
}
"""What the user has refused or taken out is not asked about again."""


def known_facts(
    memory: MemoryReader, session: str, project: str | None
) -> Mapping[str, list[KnownFact]]:
    """By category, for a new fact of a session. What is kept of the user need not be said again for
    a session."""
    entries = memory.all()
    lasting = [*_facts(entry for entry in entries if _is_of_user(entry, project))]
    own = [*_facts(entry for entry in entries if _is_of(entry, session)), *lasting]
    return {"preference": lasting, "decision": lasting, "fact": own, "context": own}


def _is_of_user(entry: MemoryEntry, project: str | None) -> bool:
    if entry.document.place != "global":
        return False
    return project is None or holds_in(entry, project)


def _is_of(entry: MemoryEntry, session: str) -> bool:
    return entry.document.place == "session" and entry.document.session == session


def _facts(entries: Iterable[MemoryEntry]) -> Iterator[KnownFact]:
    for entry in entries:
        document, state = entry.document, _AS.get(entry.document.state)
        if state is None:
            continue
        stated = entry.trust == "user-stated"
        for text in filter(None, (document.fact, document.native)):
            yield KnownFact(document.id, text, state, stated)  # type: ignore[arg-type]
