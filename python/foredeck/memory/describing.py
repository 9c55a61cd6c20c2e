"""Entries and proposals for the user: content, trust and origin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foredeck.config import Config
from foredeck.errors import StoreError
from foredeck.memory.entry import MemoryEntry, MemoryReader, one_line
from foredeck.memory.ground import GroundReader, names_of
from foredeck.memory.sections import day
from foredeck.memory.user_acts import UserActs, acts_of_user
from foredeck.memory.words import KnownFact, compare
from foredeck.model.figures import shortened
from foredeck.model.memory import Ground, MemoryDocument
from foredeck.model.messages import load_message, text_in
from foredeck.model.records import turn_id
from foredeck.sources.filesystem import open_filesystems
from foredeck.sources.projects import project_names, project_of
from foredeck.store.clock import DAY_MS
from foredeck.store.protocol import Head
from foredeck.store.store import Store

_SAID_CHARS = 300
_DEEPEST = 20
_PROJECT_CHARS = 12

_FROM = {
    "user_turn": "what you said",
    "assistant_turn": "what the model said",
    "manual": "what you typed for it",
    "pinned": "an entry that you pinned",
    "model": "what the model asked to keep",
    "analysis": "the result of a data tool",
    "import": "an entry of somebody else's that was imported",
}

_PROMPT_CHARS = 160
_LOOKED_BACK = 200
"""Earlier turns in which a proposal's prompt is searched."""

_BY = {"human": "the user", "agent": "a model", "system": "foredeck", "tool": "a tool"}


@dataclass(frozen=True, slots=True)
class Describer:
    """Describes entries. `_projects`: project names by id."""

    _memory: MemoryReader
    _ground: GroundReader | None
    _now_ms: int
    _projects: Callable[[], Mapping[str, str]] = dict

    def json(self, entry: MemoryEntry) -> dict[str, Any]:
        document = entry.document
        fields = document.model_dump(
            include={"place", "category", "fact", "native", "state", "act", "session", "turn"}
            | {"learned_from", "tool_originated", "scope", "project", "tags", "superseded_by"}
            | {"learned_ms", "created_ms", "updated_ms", "used_ms"}
        )
        return {
            "name": self._memory.name(entry.id),
            "id": entry.id,
            "trust": entry.trust,
            **fields,
            "parents": list(entry.parents),
            "promoted_from": self._promoted_from(entry),
            "grounds": [ground.model_dump() for ground in document.grounds],
            "moved": names_of(self._moved(document)),
            "review": self._is_idle(entry),
        }

    def line(self, entry: MemoryEntry) -> str:
        return self._line(entry, [f"learned {day(entry.document.learned_ms)}", *self._marks(entry)])

    def _line(self, entry: MemoryEntry, marks: Sequence[str]) -> str:
        document = entry.document
        native = f" ({document.native})" if document.native else ""
        tags = "".join(f" #{tag}" for tag in document.tags)
        return (
            f"{self._memory.name(entry.id)}  [{entry.trust}] [{document.category}] "
            f"{document.fact}{native}{tags}" + (f"  ({'; '.join(marks)})" if marks else "")
        )

    def details(self, entry: MemoryEntry) -> str:
        """The entry with origin, scope and duration, in several lines."""
        document = entry.document
        rows = [
            self._line(entry, list(self._marks(entry))),
            f"  learned   {day(document.learned_ms)} from {_FROM[document.learned_from]}"
            + (f", session {document.session}" if document.session else ""),
            f"  used      {day(document.used_ms)}",
        ]
        if document.place == "global":
            rows.append(f"  holds     {self._scope(document)}")
        moved = self._moved(document)
        for ground in document.grounds:
            state = "has changed" if ground in moved else "as it was"
            rows.append(f"  ground    {names_of([ground])[0]}: {state}")
        if document.superseded_by:
            rows.append(f"  now       {self._memory.name(document.superseded_by)}")
        return "\n".join(rows)

    def _scope(self, document: MemoryDocument) -> str:
        if document.scope != "project":
            return "everywhere"
        id = document.project or ""
        return f"in the project {self._projects().get(id, id[:_PROJECT_CHARS])}"

    def _marks(self, entry: MemoryEntry) -> Iterator[str]:
        document = entry.document
        if document.state != "kept":
            yield document.state
        if promoted := self._promoted_from(entry):
            yield f"promoted from {promoted}"
        if document.place == "global" and document.scope == "project":
            yield "in one project"
        if document.tool_originated:
            yield "a tool said so"
        if moved := self._moved(document):
            yield f"left out: {', '.join(names_of(moved))} changed"
        if self._is_idle(entry):
            yield "unused for long: does it still hold?"

    def _moved(self, document: MemoryDocument) -> list[Ground]:
        return [] if self._ground is None else self._ground.moved(document.grounds)

    def _promoted_from(self, entry: MemoryEntry) -> str | None:
        """What a pinned entry was: `finding m-k3f9`."""
        if entry.document.learned_from != "pinned":
            return None
        old = next(filter(None, map(self._memory.get, entry.parents)), None)
        if old is None:
            return "an entry that is gone"
        kind = "finding" if old.document.place == "findings" else "session entry"
        return f"{kind} {self._memory.name(old.id)}"

    def _is_idle(self, entry: MemoryEntry) -> bool:
        if entry.trust != "user-stated" or entry.document.state != "kept":
            return False
        idle_ms = self._now_ms - entry.document.used_ms
        return idle_ms > self._memory.caps.expire_days * DAY_MS


@dataclass(frozen=True, slots=True)
class MemoryDesk:
    """What commands and pages on memory work with."""

    store: Store
    acts: UserActs
    ground: GroundReader
    describe: Describer
    project: str


def memory_desk(store: Store, config: Config, folder: str) -> MemoryDesk:
    """This machine's user's memory, seen from a folder."""
    acts, filesystems = acts_of_user(store, config), open_filesystems(config, folder)
    ground = GroundReader(store, filesystems)
    here = project_of(folder, filesystems)
    describe = Describer(
        acts, ground, acts.now_ms(), lambda: {here.id: here.name, **project_names(store, config)}
    )
    return MemoryDesk(store, acts, ground, describe, here.id)


def audit_steps(memory: MemoryReader, entry: MemoryEntry) -> list[dict[str, Any]]:
    """The acts and sources behind an entry, with depths."""
    return list(_of_entry(memory, entry, 0, set()))


def _of_entry(
    memory: MemoryReader, entry: MemoryEntry, depth: int, seen: set[str]
) -> Iterator[dict[str, Any]]:
    seen.add(entry.id)
    name = memory.name(entry.id)
    for version in memory.store.history(entry.id):
        document = MemoryDocument.model_validate(dict(version.fields))
        yield {
            "depth": depth,
            "what": name,
            "act": document.act,
            "by": document.provenance.generator,
            "time_ms": document.updated_ms,
            "trust": memory.trust.entry(document),
            "says": document.fact,
            "version": version.token,
        }
    for parent in entry.parents or filter(None, [entry.document.turn]):
        if parent not in seen and depth < _DEEPEST:
            yield from _of_source(memory, parent, entry, depth + 1, seen)


def _of_source(
    memory: MemoryReader, id: str, child: MemoryEntry, depth: int, seen: set[str]
) -> Iterator[dict[str, Any]]:
    seen.add(id)
    head = memory.store.head(id)
    if head is None:
        yield {"depth": depth, "what": id, "act": "erased", "says": ""}
    elif head.type == "memory":
        yield from _of_entry(memory, memory.entry_of(head), depth, seen)
    elif head.type == "turn":
        yield from _of_turn(memory, head, child, depth)
    else:
        text = str(head.fields.get("title") or head.fields.get("args_display") or "")
        yield {"depth": depth, "what": id, "act": head.type, "says": text}


def _of_turn(
    memory: MemoryReader, head: Head, child: MemoryEntry, depth: int
) -> Iterator[dict[str, Any]]:
    is_users = child.document.learned_from == "user_turn"
    for role in ("user", "assistant"):
        address = head.fields.get(role)
        if not address:
            continue
        yield {
            "depth": depth,
            "what": head.id,
            "act": f"said by the {role}",
            "trust": memory.trust.fields(head.fields, users_part=role == "user"),
            "says": said(memory.store, address),
            "bytes": address,
            "source": is_users == (role == "user"),
        }
    for call in head.fields.get("toolcall_ids") or ():
        yield {"depth": depth, "what": call, "act": "tool call of that turn", "says": ""}


def audit_text(steps: Iterable[dict[str, Any]]) -> str:
    """An audit for people, indented by depth."""
    return "\n".join(_step_line(step) for step in steps)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposal with its prompt, the nearest entries, and the one that it contradicts."""

    name: str
    entry: MemoryEntry
    prompt: str
    nearest: tuple[tuple[str, MemoryEntry], ...]
    against: str | None


def proposals_of(memory: MemoryReader) -> list[Proposal]:
    """All proposals, oldest first."""
    entries = {entry.id: entry for entry in memory.all(state="kept")}
    return [_proposal(memory, entry, entries) for entry in reversed(memory.proposals())]


def proposal_lines(proposal: Proposal) -> list[str]:
    """A proposal for the user's decision."""
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


def crowded_out_text(memory: MemoryReader) -> str:
    """Tells the user what they stated and is not shown."""
    count = memory.crowded_out()
    if not count:
        return ""
    are = "entry of yours is" if count == 1 else "entries of yours are"
    return f"{count} {are} kept but not shown: memory.global_entries is lower than their number."


def inbox_text(proposals: Sequence[Proposal]) -> str:
    """The proposals as a list."""
    if not proposals:
        return "Nothing waits for your word."
    parts = [
        "\n".join((f"{each.name}  {first}", *(f"    {line}" for line in rest)))
        for each in proposals
        for first, *rest in [proposal_lines(each)]
    ]
    return "\n".join(parts)


def prompt_of(store: Store, turn: str | None) -> str:
    """The user's request behind a turn, on one line."""
    for id in _back(turn):
        head = store.head(id)
        if head is None:
            return ""
        if address := head.fields.get("user"):
            # Shown in a terminal, which would obey what a pasted text holds.
            return one_line(shortened(said(store, address), _PROMPT_CHARS))
    return ""


def said(store: Store, address: str) -> str:
    """A stored message's text; empty if gone."""
    try:
        return text_in(load_message(address, store.blob).get("content"))
    except StoreError:
        return ""


def _step_line(step: dict[str, Any]) -> str:
    time = f" {day(step['time_ms'])}" if "time_ms" in step else ""
    by = f" by {_BY[step['by']]}" if "by" in step else ""
    trust = f" [{step['trust']}]" if "trust" in step else ""
    says = f": {' '.join(step['says'].split())[:_SAID_CHARS]}" if step["says"] else ""
    return f"{'  ' * step['depth']}{step['what']}{trust} {step['act']}{by}{time}{says}"


def _proposal(memory: MemoryReader, entry: MemoryEntry, kept: dict[str, MemoryEntry]) -> Proposal:
    rivals = [other for other in kept.values() if _is_rival(entry, other)]
    facts = [KnownFact(other.id, other.document.fact) for other in rivals]
    compared = compare(entry.document.fact, facts)
    against = compared.contradicts or compared.same
    near = dict.fromkeys(similar.id for similar in (*filter(None, [against]), *compared.nearest))
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


def _back(turn: str | None) -> Iterator[str]:
    session, _, number = (turn or "").removeprefix("turn:").rpartition(":")
    if number.isdigit():
        for before in range(int(number), max(0, int(number) - _LOOKED_BACK), -1):
            yield turn_id(session, before)


def _nature(entry: MemoryEntry) -> str:
    document = entry.document
    holds = "in this project" if document.scope == "project" else "everywhere"
    where = {"global": f", {holds}", "session": ", in its session", "findings": ""}[document.place]
    if entry.trust == "user-stated":
        whose = "your own words"
    elif document.tool_originated:
        whose = "from a tool's output: a stranger may have written it"
    elif document.learned_from == "import":
        whose = "imported: somebody else may have written it"
    else:
        whose = "the model's wording"
    return f"{document.category}{where}; {whose}"
