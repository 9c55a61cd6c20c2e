"""Reads notes: as stored, by branch, of other sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from foredeck.errors import StoreError
from foredeck.model.messages import load_message
from foredeck.model.observations import ObservationDocument, ReflectionDocument, Remark
from foredeck.model.quoting import block, one_line
from foredeck.observations.chunks import Position, WallTime
from foredeck.observations.texts import text_of
from foredeck.store.protocol import Head, Token
from foredeck.store.sessions import private_sessions
from foredeck.store.store import Store

D = TypeVar("D", ObservationDocument, ReflectionDocument)

BLOCK_CHARS = 2400
"""Of the block; the head grows by as much."""
MOST_SESSIONS = 5
_SHORT = 8

SHORTEST_NOTE = 12
"""Shorter texts do not reveal their source."""

LONG_NOTE = 30
"""From this length, prompts are searched too."""


@dataclass(frozen=True)  # with slots, Python 3.11 cannot make one by its alias
class Noted(Generic[D]):
    """A stored note: the version, and its document."""

    head: Head
    document: D

    @property
    def id(self) -> str:
        return self.head.id

    @property
    def token(self) -> Token:
        return self.head.token

    @property
    def text(self) -> str:
        """What the model reads; empty if deleted."""
        return self.document.content or ""

    @property
    def tokens(self) -> int:
        return self.document.tokens

    @property
    def remark_times(self) -> list[int]:
        """Times of its remarks in milliseconds."""
        return [remark.time_ms for remark in self.document.remarks]

    @property
    def is_condensed(self) -> bool:
        """Whether it is a reflection."""
        return isinstance(self.document, ReflectionDocument)

    @property
    def is_deleted(self) -> bool:
        """An observation's messages stay observed; what a reflection replaced counts again."""
        return self.document.content is None


Observation = Noted[ObservationDocument]
Reflection = Noted[ReflectionDocument]


@dataclass(frozen=True, slots=True)
class Placed:
    observation: Observation
    start: int
    end: int
    first: int


@dataclass(frozen=True, slots=True)
class ObservedBranch:
    """A branch's notes: usable observations in order, reflections, and observations that none of
    these replaces."""

    placed: tuple[Placed, ...] = ()
    reflections: tuple[Reflection, ...] = ()
    observations: tuple[Observation, ...] = ()

    @property
    def position(self) -> Position:
        """How far the branch is observed."""
        return _observed_up_to(self.placed[-1]) if self.placed else Position()

    @property
    def notes(self) -> Sequence[Observation | Reflection]:
        """What may replace messages, oldest first."""
        return (*self.reflections, *self.observations)

    @property
    def newest(self) -> Reflection | None:
        """The newest reflection, if any."""
        return max(self.reflections, key=lambda r: r.document.generation, default=None)


@dataclass(frozen=True, slots=True)
class StoredNotes:
    """All notes of some sessions, on all branches."""

    observations: Sequence[Observation]
    reflections: Sequence[Reflection]

    def on_branch(self, addresses: Sequence[str]) -> ObservedBranch:
        """A branch's notes; `addresses`: of its messages."""
        # A reflection counts where all that it replaces is on the branch and nothing of it was made
        # for another one. Deleted ones do not count: what they had replaced counts again.
        placed = _on_branch(self.observations, addresses)
        order = {p.observation.id: n for n, p in enumerate(placed)}
        behind = {r.id: r.document.observations for r in self.reflections}
        usable = [
            r
            for r in self.reflections
            if not r.is_deleted and behind[r.id] and order.keys() >= {*behind[r.id]}
        ]
        chosen: list[Reflection] = []
        replaced: set[str] = set()
        # Of two that go back to one observation, the newer has condensed the older.
        newest = sorted(usable, key=lambda r: (r.document.generation, r.id), reverse=True)
        for reflection in newest:
            if replaced.isdisjoint(behind[reflection.id]):
                chosen.append(reflection)
                replaced.update(behind[reflection.id])
        chosen.sort(key=lambda r: order[behind[r.id][0]])
        unreplaced = (p.observation for p in placed if p.observation.id not in replaced)
        undeleted = tuple(observation for observation in unreplaced if not observation.is_deleted)
        return ObservedBranch(tuple(placed), tuple(chosen), undeleted)


def stored_notes(store: Store, sessions: Sequence[str]) -> StoredNotes:
    """The notes of these sessions, ancestors last."""
    # Where two have noted the same message, the first counts: a fork's own.
    heads = [head for session in sessions for head in _heads(store, session)]
    return StoredNotes(
        _read(store, [head for head in heads if head.type == "observation"], ObservationDocument),
        _read(store, [head for head in heads if head.type == "reflection"], ReflectionDocument),
    )


def versions_noted(store: Store, sessions: Sequence[str]) -> frozenset[tuple[str, Token]]:
    """The versions that `stored_notes` would read."""
    return frozenset((head.id, head.token) for s in sessions for head in _heads(store, s))


def note_named(store: Store, id: str) -> Observation | Reflection | None:
    """The note with this id, if any."""
    head = store.head(id)
    if head is None or head.type not in ("observation", "reflection"):
        return None
    if head.type == "reflection":
        return next(iter(_read(store, [head], ReflectionDocument)), None)
    return next(iter(_read(store, [head], ObservationDocument)), None)


def latest_in_project(
    store: Store, project: str, but: AbstractSet[str], most: int
) -> list[tuple[str, list[Observation]]]:
    """A project's sessions with the latest observations, latest first.

    `but`: sessions to skip; `most`: how many are read.
    """
    by_session: dict[str, list[Head]] = {}
    for head in store.query("observation", {"project": project}):
        noted = head.view(ObservationDocument)
        if noted.session not in but and noted.text_hash:
            by_session.setdefault(noted.session, []).append(head)
    last = {s: max(head.fields.get("to_ms") or 0 for head in by_session[s]) for s in by_session}
    order = sorted(by_session, key=lambda session: (last[session], session), reverse=True)[:most]
    return [(s, _read(store, by_session[s], ObservationDocument)) for s in order]


def notes_about(store: Store, is_meant: Callable[[str], bool]) -> list[Head]:
    """Observations of selected messages, and reflections on them."""
    observations = [
        head
        for head in store.query("observation")
        if any(map(is_meant, head.view(ObservationDocument).covers))
    ]
    ids = {head.id for head in observations}
    behind = [
        head
        for head in store.query("reflection")
        if not ids.isdisjoint(head.view(ReflectionDocument).observations)
    ]
    return [*observations, *behind]


@dataclass(frozen=True, slots=True)
class OtherSessionsSection:
    """The head's newest remarks of other sessions, except private ones and ancestors."""

    store: Store
    project: str
    own: frozenset[str]
    clock: WallTime = field(default_factory=WallTime)
    # The name says whose it is, or the model would go on with another session's work.
    name: str = "noted in other sessions of this project; not part of this one"
    extra_chars: int = BLOCK_CHARS

    def text(self, limit: int) -> str:
        """The newest remarks that fit, by session."""
        room = min(limit, BLOCK_CHARS)
        blocks: list[str] = []
        hidden = self.own | {*private_sessions(self.store)}
        for session, observations in latest_in_project(
            self.store, self.project, hidden, MOST_SESSIONS
        ):
            heading = f"session {one_line(session[:_SHORT])}"
            notes = self._newest(observations, room - len(heading) - 1)
            if not notes:
                break
            blocks.append(f"{heading}\n{notes}")
            room -= len(blocks[-1]) + 1
        return "\n".join(reversed(blocks))

    def _newest(self, observations: list[Observation], room: int) -> str:
        selection: list[Remark] = []
        text = ""
        for remark in _newest_first(observations):
            longer = block(text_of([remark, *selection], self.clock))
            if len(longer) > room:
                break
            selection, text = [remark, *selection], longer
        return text


def noted_of(store: Store, result: Head) -> list[Head]:
    """Notes on a tool's result, and what was made of them."""
    call = result.fields.get("provider_call_id") or result.id
    by_address: dict[str, bool] = {}

    def holds(address: str) -> bool:
        if address not in by_address:
            try:
                by_address[address] = load_message(address, store.blob).get("toolCallId") == call
            except (StoreError, ValueError, TypeError):
                by_address[address] = False
        return by_address[address]

    return notes_about(store, holds)


def texts_noted(store: Store, notes: Iterable[Head]) -> list[str]:
    """All versions' texts of notes, longest first."""
    texts: set[str] = set()
    for note in notes:
        for version in store.history(note.id):
            fields = version.fields
            document = store.document(version)
            texts.add((document.content if document else None) or "")
            texts.update(remark["content"] for remark in fields.get("remarks") or ())
            texts.update((fields.get("current_task") or "", fields.get("suggestion") or ""))
    return sorted((text for text in texts if len(text) >= SHORTEST_NOTE), key=len, reverse=True)


def _heads(store: Store, session: str) -> Iterator[Head]:
    yield from store.query("observation", {"session": session})
    yield from store.query("reflection", {"session": session})


def _read(store: Store, heads: Iterable[Head], kind: type[D]) -> list[Noted[D]]:
    pairs = ((head, store.get(head.id, kind, head.token)) for head in heads)
    return [Noted(head, document) for head, document in pairs if document is not None]


def _on_branch(observations: Sequence[Observation], addresses: Sequence[str]) -> list[Placed]:
    """A branch's usable observations; on overlap the earlier start wins."""
    # One counts where all of its messages are on the branch, one after the other. So a branch sees
    # only its own past, a message that the host has changed is observed anew, and what was summed
    # up by the host no longer counts.
    starts: dict[str, list[int]] = {}
    for index, address in enumerate(addresses):
        starts.setdefault(address, []).append(index)
    candidates = [placed for o in observations if (placed := _place(o, addresses, starts))]
    candidates.sort(key=lambda p: (p.start, p.first))  # of equals the first stays first
    chosen: list[Placed] = []
    reached = Position()
    for placed in candidates:
        is_next = placed.start == reached.messages and placed.first == reached.chars
        if is_next or (placed.start > reached.messages and not placed.first):
            chosen.append(placed)
            reached = _observed_up_to(placed)
    return chosen


def _observed_up_to(placed: Placed) -> Position:
    part = placed.observation.document.part
    is_unfinished = part is not None and part.end < part.length
    return Position(placed.end, part.end if part is not None and is_unfinished else 0)


def _place(
    observation: Observation, addresses: Sequence[str], starts: Mapping[str, Sequence[int]]
) -> Placed | None:
    covers, part = observation.document.covers, observation.document.part
    first = covers[0] if covers else part.address if part is not None else ""
    for start in starts.get(first, ()):
        if list(addresses[start : start + len(covers)]) == covers:
            char = 0 if part is None else part.start
            return Placed(observation, start, start + len(covers), char)
    return None


def _newest_first(observations: list[Observation]) -> Iterator[Remark]:
    for observation in reversed(observations):
        for remark in reversed(observation.document.remarks):
            if remark.priority != "low":
                yield remark
