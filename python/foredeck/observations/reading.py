"""Reads what was noted: all of it as stored, and what a branch, other sessions and a purge need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from foredeck.errors import StoreError
from foredeck.model.kinds import kind_of
from foredeck.model.messages import load_message
from foredeck.model.observations import ObservationDocument, ReflectionDocument, Remark
from foredeck.model.quoting import block, one_line
from foredeck.observations.chunks import Position
from foredeck.observations.excerpt import WallTime
from foredeck.observations.texts import text_of
from foredeck.store.protocol import Head, Store, Token
from foredeck.store.sessions import private_sessions

D = TypeVar("D", ObservationDocument, ReflectionDocument)

BLOCK_CHARS = 2400
"""Of the block. The head may be longer by as much, so that other sections lose no room to it."""
MOST_SESSIONS = 5
_SHORT = 8

SHORTEST_NOTE = 12
"""Characters of a text of an observation, below which it says nothing of where it came from."""

LONG_NOTE = 30
"""From this length on other texts are searched for it, too, such as prompts."""


@dataclass(frozen=True)  # with slots, Python 3.11 cannot make one by its alias
class Noted(Generic[D]):
    """A stored observation or reflection: the version that was read, and its document. An
    observation says what was noted of a span of messages; a reflection replaces observations or
    earlier reflections."""

    head: Head
    document: D

    @property
    def id(self) -> str:
        """Of its object."""
        return self.head.id

    @property
    def token(self) -> Token:
        """Of the version."""
        return self.head.token

    @property
    def text(self) -> str:
        """What the model reads of it; empty where the user has deleted it."""
        return self.document.content or ""

    @property
    def tokens(self) -> int:
        """Of its text."""
        return self.document.tokens

    @property
    def remark_times(self) -> list[int]:
        """When its remarks were made, in milliseconds."""
        return [remark.time_ms for remark in self.document.remarks]

    @property
    def is_condensed(self) -> bool:
        """Whether it is a reflection."""
        return isinstance(self.document, ReflectionDocument)

    @property
    def is_deleted(self) -> bool:
        """The user has deleted it. Nothing replaces an observation's messages then, which count
        as observed; what a reflection had replaced counts again."""
        return self.document.content is None


Observation = Noted[ObservationDocument]
Reflection = Noted[ReflectionDocument]


@dataclass(frozen=True, slots=True)
class Placed:
    """An observation, and where on the branch the messages are that it covers: from `start` to
    before `end`. The span is empty for a piece of a long message, which is at `start`, and begins
    at its character `first`."""

    observation: Observation
    start: int
    end: int
    first: int


@dataclass(frozen=True, slots=True)
class ObservedBranch:
    """What was noted of a branch.

    placed        the observations that it may use, in the order of what they cover
    reflections   those that it may use, oldest first
    observations  those that none of these replaces, oldest first
    """

    placed: tuple[Placed, ...] = ()
    reflections: tuple[Reflection, ...] = ()
    observations: tuple[Observation, ...] = ()

    @property
    def position(self) -> Position:
        """How far the branch is observed."""
        return _observed_up_to(self.placed[-1]) if self.placed else Position()

    @property
    def notes(self) -> Sequence[Observation | Reflection]:
        """What may replace its messages, oldest first."""
        return (*self.reflections, *self.observations)

    @property
    def newest(self) -> Reflection | None:
        """The reflection that was made last; None for none."""
        return max(self.reflections, key=lambda r: r.document.generation, default=None)


@dataclass(frozen=True, slots=True)
class StoredNotes:
    """All that was noted in some sessions, on all their branches: of one session oldest first, the
    sessions in the order in which they were asked for."""

    observations: Sequence[Observation]
    reflections: Sequence[Reflection]

    def on_branch(self, addresses: Sequence[str]) -> ObservedBranch:
        """What a branch may use of it; `addresses`: of the branch's messages."""
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
        left = (p.observation for p in placed if p.observation.id not in replaced)
        kept = tuple(observation for observation in left if not observation.is_deleted)
        return ObservedBranch(tuple(placed), tuple(chosen), kept)


def stored_notes(store: Store, sessions: Sequence[str]) -> StoredNotes:
    """What was noted in these sessions. Give a session before those that it was forked from."""
    # Where two have noted the same message, the first counts: a fork's own.
    found = [head for session in sessions for head in _heads(store, session)]
    return StoredNotes(
        _read(store, [head for head in found if head.type == "observation"], ObservationDocument),
        _read(store, [head for head in found if head.type == "reflection"], ReflectionDocument),
    )


def versions_noted(store: Store, sessions: Sequence[str]) -> frozenset[tuple[str, Token]]:
    """Which versions `stored_notes` would read: ids and tokens."""
    return frozenset((head.id, head.token) for s in sessions for head in _heads(store, s))


def note_named(store: Store, id: str) -> Observation | Reflection | None:
    """The observation or reflection with this id; None where there is none."""
    head = store.head(id)
    if head is None or head.type not in ("observation", "reflection"):
        return None
    if head.type == "reflection":
        return next(iter(_read(store, [head], ReflectionDocument)), None)
    return next(iter(_read(store, [head], ObservationDocument)), None)


def latest_in_project(
    store: Store, project: str, but: AbstractSet[str], most: int
) -> list[tuple[str, list[Observation]]]:
    """The sessions of a project with the latest observations, the latest first, each with its
    observations that are not deleted, oldest first. `but`: sessions to leave out; `most`: how many
    are read."""
    by_session: dict[str, list[Head]] = {}
    for head in store.query("observation", {"project": project}):
        noted = head.view(ObservationDocument)
        if noted.session not in but and noted.text_hash:
            by_session.setdefault(noted.session, []).append(head)
    last = {s: max(head.fields.get("to_ms") or 0 for head in by_session[s]) for s in by_session}
    order = sorted(by_session, key=lambda session: (last[session], session), reverse=True)[:most]
    return [(s, _read(store, by_session[s], ObservationDocument)) for s in order]


def notes_about(store: Store, is_meant: Callable[[str], bool]) -> list[Head]:
    """Observations of any session that cover a message which is meant, by its address, and the
    reflections that go back to them. No text is read."""
    found = [
        head
        for head in store.query("observation")
        if any(map(is_meant, head.view(ObservationDocument).covers))
    ]
    ids = {head.id for head in found}
    behind = [
        head
        for head in store.query("reflection")
        if not ids.isdisjoint(head.view(ReflectionDocument).observations)
    ]
    return [*found, *behind]


@dataclass(frozen=True, slots=True)
class OtherSessionsSection:
    """The newest remarks of the project's other sessions, for the head.

    `own`: the session and those that it was forked from. Nothing of theirs is in it, and nothing of
    private sessions.
    """

    store: Store
    project: str
    own: frozenset[str]
    clock: WallTime = field(default_factory=WallTime)
    # The name says whose it is, or the model would go on with another session's work.
    name: str = "noted in other sessions of this project; not part of this one"
    extra_chars: int = BLOCK_CHARS

    def text(self, limit: int) -> str:
        """As many of the newest as fit, those of one session together, the latest session last."""
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
        kept: list[Remark] = []
        text = ""
        for remark in _newest_first(observations):
            longer = block(text_of([remark, *kept], self.clock))
            if len(longer) > room:
                break
            kept, text = [remark, *kept], longer
        return text


def noted_of(store: Store, result: Head) -> list[Head]:
    """What was noted of messages that include the result of a tool call, with what was made
    of that in turn: observations and reflections."""
    call = result.fields.get("provider_call_id") or result.id
    asked: dict[str, bool] = {}

    def holds(address: str) -> bool:
        if address not in asked:
            try:
                asked[address] = load_message(address, store.blob).get("toolCallId") == call
            except (StoreError, ValueError, TypeError):
                asked[address] = False
        return asked[address]

    return notes_about(store, holds)


def texts_noted(store: Store, notes: Iterable[Head]) -> list[str]:
    """The texts of observations and reflections in all their versions, the longest first."""
    found: set[str] = set()
    for note in notes:
        for version in store.history(note.id):
            fields = version.fields
            document = store.get(note.id, kind_of(note.type), version.token)
            found.add((document.content if document else None) or "")
            found.update(remark["content"] for remark in fields.get("remarks") or ())
            found.update((fields.get("current_task") or "", fields.get("suggestion") or ""))
    return sorted((text for text in found if len(text) >= SHORTEST_NOTE), key=len, reverse=True)


def _heads(store: Store, session: str) -> Iterator[Head]:
    yield from store.query("observation", {"session": session})
    yield from store.query("reflection", {"session": session})


def _read(store: Store, heads: Iterable[Head], kind: type[D]) -> list[Noted[D]]:
    """These versions with their documents, but for what was erased meanwhile."""
    found = ((head, store.get(head.id, kind, head.token)) for head in heads)
    return [Noted(head, document) for head, document in found if document is not None]


def _on_branch(observations: Sequence[Observation], addresses: Sequence[str]) -> list[Placed]:
    """The observations that a branch may use, in the order of what they cover.

    Where two cover the same message, that which begins earlier counts, then that which comes first
    in `observations`.
    """
    # One counts where all of its messages are on the branch, one after the other. So a branch sees
    # only its own past, a message that the host has changed is observed anew, and what was summed
    # up by the host no longer counts.
    starts: dict[str, list[int]] = {}
    for index, address in enumerate(addresses):
        starts.setdefault(address, []).append(index)
    found = [placed for o in observations if (placed := _place(o, addresses, starts))]
    found.sort(key=lambda p: (p.start, p.first))  # of equals the first stays first
    chosen: list[Placed] = []
    reached = Position()
    for placed in found:
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
    """What matters of them beyond their own session: decisions and results, not steps."""
    for observation in reversed(observations):
        for remark in reversed(observation.document.remarks):
            if remark.priority != "low":
                yield remark
