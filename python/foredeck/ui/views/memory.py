"""What is remembered: the inbox, what holds everywhere and in projects, in sessions, findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from foredeck.errors import ForedeckError, NotFound
from foredeck.memory.describing import MemoryDesk, audit_steps
from foredeck.memory.entry import MemoryEntry, MemoryRefused
from foredeck.ui.pages import WebPage

PLACES = ("global", "session", "findings")


def memory_page(
    desk: MemoryDesk, place: str | None, contains: str, tag: str | None, *, edits: bool
) -> WebPage:
    """What is kept or proposed; `place`, `contains` and `tag` choose among it. `edits`: whether it
    can be changed here."""
    entries = [entry for entry in desk.acts.all() if entry.document.state in ("kept", "proposed")]
    shown = [entry for entry in entries if _is_asked(entry, place, contains, tag)]
    described = [desk.describe.json(entry) for entry in shown]
    waiting = [entry for entry in described if entry["state"] == "proposed"]
    counts = {name: sum(e.document.place == name for e in entries) for name in PLACES}
    data = {
        "place": place,
        "places": [{"place": name, "count": counts[name]} for name in PLACES],
        "contains": contains,
        "tag": tag,
        "tags": sorted({each for entry in entries for each in entry.document.tags}),
        "total": len(entries),
        "inbox": waiting,
        "entries": [entry for entry in described if entry["state"] != "proposed"],
        "edits": edits,
    }
    return WebPage("memory.html", "Memory", data, "memory")


def memory_entry_page(desk: MemoryDesk, name: str, *, edits: bool) -> WebPage:
    """One entry, with all that it came from. Raises `NotFound` or `ForedeckError`."""
    entry = desk.acts.find(name)
    data = {
        "entry": desk.describe.json(entry),
        "details": desk.describe.details(entry),
        "steps": audit_steps(desk.acts, entry),
        "descendants": [desk.describe.json(each) for each in desk.acts.descendants(entry.id)],
        "edits": edits,
    }
    return WebPage("memory_entry.html", entry.document.fact[:80], data, "memory")


def change_memory(desk: MemoryDesk, act: str, ids: Sequence[str]) -> tuple[int, list[str]]:
    """Do the same to several entries, as their user: how many that was done to, and why not to the
    others. Raises `NotFound` for an act that there is not."""
    acts: Mapping[str, Callable[[str], object]] = {
        "accept": desk.acts.accept,
        "refuse": desk.acts.refuse,
        "demote": desk.acts.demote,
        "delete": desk.acts.delete,
        "pin-preference": lambda id: desk.acts.pin(id, "preference"),
        "pin-decision": lambda id: _pin_decision(desk, id),
    }
    if act not in acts:
        raise NotFound(f"there is no act {act!r}: {', '.join(acts)}.")
    refused = []
    for id in ids:
        try:
            acts[act](desk.acts.find(id).id)
        except ForedeckError as error:
            refused.append(str(error))
    return len(ids) - len(refused), refused


def _pin_decision(desk: MemoryDesk, id: str) -> None:
    """A decision holds in the project in which it was made."""
    project = desk.acts.find(id).document.project
    if project is None:
        raise MemoryRefused(
            "In which project that was decided is not known: pin it there, with "
            "`foredeck memory pin`."
        )
    desk.acts.pin(id, "decision", project)


def _is_asked(entry: MemoryEntry, place: str | None, contains: str, tag: str | None) -> bool:
    document = entry.document
    if (place and document.place != place) or (tag and tag not in document.tags):
        return False
    words = f"{document.fact} {document.native} {document.category}".casefold()
    return contains.casefold() in words
