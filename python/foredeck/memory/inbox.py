"""What waits for the user's word: each proposal with the prompt that it came from and the kept
entries most like it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from foredeck.memory.describing import said
from foredeck.memory.entry import MemoryEntry
from foredeck.memory.extracting.likeness import KnownFact, compare
from foredeck.memory.reading import MemoryReader
from foredeck.memory.rules import one_line
from foredeck.model.figures import shortened
from foredeck.model.records import turn_id
from foredeck.store.protocol import Store

_PROMPT_CHARS = 160
_LOOKED_BACK = 200
"""Turns before the one that a proposal came from, among which the prompt is found."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One of them, by the names that people know.

    prompt   what the user had asked for, in short; empty where that is gone
    nearest  kept entries like it, by name
    against  the one of them that says the contrary; None for none
    """

    name: str
    entry: MemoryEntry
    prompt: str
    nearest: tuple[tuple[str, MemoryEntry], ...]
    against: str | None


def proposals_of(memory: MemoryReader) -> list[Proposal]:
    """All that wait, the oldest first: whoever answers one by one answers in order."""
    kept = {entry.id: entry for entry in memory.all(state="kept")}
    return [_proposal(memory, entry, kept) for entry in reversed(memory.proposals())]


def _proposal(memory: MemoryReader, entry: MemoryEntry, kept: dict[str, MemoryEntry]) -> Proposal:
    rivals = [other for other in kept.values() if _is_rival(entry, other)]
    facts = [KnownFact(other.id, other.document.fact) for other in rivals]
    compared = compare(entry.document.fact, facts)
    against = compared.contradicts or compared.same
    near = dict.fromkeys(known.id for known in (*filter(None, [against]), *compared.nearest))
    return Proposal(
        memory.name(entry.id),
        entry,
        prompt_of(memory.store, entry.document.turn),
        tuple((memory.name(id), kept[id]) for id in near),
        None if against is None else memory.name(against.id),
    )


def _is_rival(entry: MemoryEntry, other: MemoryEntry) -> bool:
    mine, its = entry.document, other.document
    if mine.place != its.place:
        return False
    return mine.place == "global" or mine.session == its.session


def prompt_of(store: Store, turn: str | None) -> str:
    """What the user asked for in the user turn that a turn belongs to, on one line."""
    for id in _back(turn):
        head = store.head(id)
        if head is None:
            return ""
        if address := head.fields.get("user"):
            # Shown in a terminal, which would obey what a pasted text holds.
            return one_line(shortened(said(store, address), _PROMPT_CHARS))
    return ""


def _back(turn: str | None) -> Iterator[str]:
    """The turn, and those of its session before it, the nearest first."""
    session, _, number = (turn or "").removeprefix("turn:").rpartition(":")
    if number.isdigit():
        for before in range(int(number), max(0, int(number) - _LOOKED_BACK), -1):
            yield turn_id(session, before)


def proposal_lines(proposal: Proposal) -> list[str]:
    """What the user reads of one before they decide."""
    document = proposal.entry.document
    lines = [document.fact]
    if document.native and document.native != document.fact:
        lines.append(f'in the words "{document.native}"')
    lines.append(_nature(proposal.entry))
    if proposal.prompt:
        lines.append(f"from: {proposal.prompt}")
    for name, other in proposal.nearest:
        how = "instead of" if name == proposal.against else "like"
        lines.append(f"{how} {name}: {other.document.fact}")
    return lines


def _nature(entry: MemoryEntry) -> str:
    document = entry.document
    holds = "in this project" if document.scope == "project" else "everywhere"
    where = {"global": f", {holds}", "session": ", in its session", "findings": ""}[document.place]
    if entry.trust == "user-stated":
        whose = "your own words"
    elif document.tool_originated:
        whose = "from a tool's output: nobody you know may have written it"
    else:
        whose = "the model's wording"
    return f"{document.category}{where}; {whose}"


def inbox_text(proposals: Sequence[Proposal]) -> str:
    """All of them as a list."""
    if not proposals:
        return "Nothing waits for your word."
    parts = [
        "\n".join((f"{each.name}  {first}", *(f"    {line}" for line in rest)))
        for each in proposals
        for first, *rest in [proposal_lines(each)]
    ]
    return "\n".join(parts)
