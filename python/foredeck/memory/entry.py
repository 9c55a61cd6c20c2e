"""An entry of memory as it is worked with; what each place takes, and for how long; and the entries
in the store, as one user sees them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foredeck.config import Config
from foredeck.errors import ForedeckError
from foredeck.memory.trust import Trust, TrustOf, User
from foredeck.model.ids import ENTRY, ShortNames, uuid7
from foredeck.model.memory import (
    CATEGORIES,
    FACT_CHARS,
    Category,
    MemoryDocument,
    MemoryState,
    Place,
    list_of_user,
)
from foredeck.store.clock import DAY_MS
from foredeck.store.protocol import Head, Scalar, Store, Token

PROPOSAL_DAYS = 30
"""For how long a proposal waits for an answer."""

MOST_PROPOSALS = 50
"""That wait at one time; the oldest one expires for the next."""

USE_NOTED_MS = DAY_MS
"""Uses of an entry within this time of the last one that was noted make no further version."""

_BLANKS = re.compile(r"[\s\x00-\x1f\x7f\x85\u2028\u2029\ufeff\u200b-\u200f\u202a-\u202e]+")


class MemoryRefused(ForedeckError):
    """An act on memory that cannot be done; says why, and what to do instead."""

    exit_code = 2


class NoSuchEntry(MemoryRefused):
    """No entry is called so."""

    exit_code = 4


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


@dataclass(frozen=True, slots=True)
class MemoryCaps:
    """How many entries are kept: of one session, of one user everywhere and again in each project,
    of one session's findings."""

    session: int = 50
    everywhere: int = 100
    findings: int = 100
    expire_days: int = 90
    """After how many days without use an entry expires that the user has not stated."""

    def of(self, place: Place) -> int:
        """Those of a place."""
        return {"session": self.session, "global": self.everywhere, "findings": self.findings}[
            place
        ]


def caps_of(config: Config) -> MemoryCaps:
    """How much is kept, and for how long as configured."""
    section = config.memory
    return MemoryCaps(
        section.session_entries, section.global_entries, section.findings, section.expire_days
    )


def place_of(category: Category) -> Place:
    """Where entries of a category belong."""
    return next(place for place, ones in CATEGORIES.items() if category in ones)


def one_line(text: str, what: str = "fact") -> str:
    """A text as it is kept: on one line, without what no one can see. Raises `MemoryRefused`."""
    line = _BLANKS.sub(" ", text).strip()
    if len(line) > FACT_CHARS:
        raise MemoryRefused(
            f"The {what} has {len(line):,} characters, and {FACT_CHARS} are kept: say it shorter."
        )
    return line


def said_text(text: str) -> str:
    """As `one_line`, of a text that must say something."""
    line = one_line(text)
    if not line:
        raise MemoryRefused("There is nothing to remember: the text is empty.")
    return line


def check_category(place: Place, category: Category) -> None:
    """Raise `MemoryRefused` where a place does not take a category."""
    if category not in CATEGORIES[place]:
        known = " or ".join(CATEGORIES[place])
        raise MemoryRefused(f"A {category} is no {place} memory: that takes {known}.")


def keeping_order(entry: MemoryEntry) -> tuple[bool, int, str]:
    """What entries are sorted by: who stays longest is last."""
    # What the user stated first, or a flood of derived entries could push it out.
    return (entry.trust == "user-stated", *entry.age)


def surplus(kept: Sequence[MemoryEntry], most: int) -> list[MemoryEntry]:
    """Those that must leave so that at most `most` stay."""
    return sorted(kept, key=keeping_order)[: max(0, len(kept) - most)]


def has_expired(entry: MemoryEntry, now_ms: int, days: int) -> bool:
    """Whether an entry's time is over. What the user has stated never expires."""
    document = entry.document
    if document.state == "proposed":
        return now_ms - document.created_ms > PROPOSAL_DAYS * DAY_MS
    if document.state != "kept" or entry.trust == "user-stated":
        return False
    return now_ms - document.used_ms > days * DAY_MS


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
        self._list = list_of_user(user.id)
        self._names: tuple[Token | None, ShortNames] = (None, ShortNames(ENTRY))

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
        return _newest_first(map(self.entry_of, self.store.query("memory", where)))

    def of_others(self) -> list[MemoryEntry]:
        """What others have kept with sessions that are here, such as imported ones, the newest
        first. It stands in the prompts of these sessions, and only its owner changes it."""
        entries = map(self.entry_of, self.store.query("memory"))
        return _newest_first(
            entry
            for entry in entries
            if entry.document.owner != self.user.id and entry.document.place != "global"
        )

    def of_session(self, session: str, place: Place) -> list[MemoryEntry]:
        """What is kept with a session, the newest first; never more than the cap."""
        where: dict[str, Scalar | None] = {"session": session, "place": place, "state": "kept"}
        return self._capped(self.store.query("memory", where), place)

    def of_user(self, project: str | None = None) -> list[MemoryEntry]:
        """What is kept of the user, the newest first; never more than the cap. `project`: only
        what holds there."""
        # All of it carries their word. What does not was written by others in their name, or before
        # their key was lost.
        where: dict[str, Scalar | None] = {"object": self._list, "place": "global", "state": "kept"}
        found = self._capped(self.store.query("memory", where), "global")
        stated = [entry for entry in found if entry.trust == "user-stated"]
        return [entry for entry in stated if holds_in(entry, project)]

    def proposals(self) -> list[MemoryEntry]:
        """What waits for the user's word, the newest first."""
        where: dict[str, Scalar | None] = {"object": self._list, "state": "proposed"}
        return _newest_first(map(self.entry_of, self.store.query("memory", where)))

    def find(self, name: str) -> MemoryEntry:
        """The entry that a name means, the user's own before others'. Raises `MemoryRefused`."""
        if not name.strip():
            raise NoSuchEntry("Say which entry, by its name, such as m-k3f9.")
        names = self._own_names()
        found = names.find(name)
        if not found:
            names = ShortNames(ENTRY, (entry.id for entry in self.of_others()))
            found = names.find(name)
        if len(found) > 1:
            named = ", ".join(map(names.name, found[:_MOST_NAMED]))
            raise MemoryRefused(f"{name!r} means {len(found)} entries: {named}. Give more letters.")
        entry = self.get(found[0]) if found else None
        if entry is None:
            raise NoSuchEntry(
                f"There is no entry {name!r}. `foredeck memory list --all` lists every one."
            )
        return entry

    def name(self, id: str) -> str:
        """What an entry is called."""
        return self._own_names().name(id)

    def _own_names(self) -> ShortNames:
        """The names of all entries of this user."""
        latest = self.store.latest()
        if latest is None or self._names[0] != latest:
            found = self.store.query("memory", {"owner": self.user.id})
            self._names = latest, ShortNames(ENTRY, (head.id for head in found))
        return self._names[1]

    def descendants(self, id: str) -> list[MemoryEntry]:
        """All entries that come from an object: made from it, or from what was made from it."""
        children: dict[str, list[Head]] = {}
        for head in self.store.query("memory"):
            fields = head.fields
            for parent in {*fields["provenance"]["parent_refs"], fields.get("turn")}:
                children.setdefault(str(parent), []).append(head)
        found: dict[str, Head] = {}
        waiting = [id]
        while waiting:
            for head in children.get(waiting.pop(), ()):
                if head.id not in found and head.id != id:
                    found[head.id] = head
                    waiting.append(head.id)
        return _newest_first(map(self.entry_of, found.values()))

    def entry_of(self, head: Head) -> MemoryEntry:
        """The entry in a stored version."""
        document = MemoryDocument.model_validate(dict(head.fields))
        return MemoryEntry(document, head.token, self.trust.entry(document))

    def _capped(self, heads: Iterable[Head], place: Place) -> list[MemoryEntry]:
        # Two machines may have filled a place at the same time: what is over the cap is not there
        # for anybody, whether or not somebody has taken it out by now.
        entries = list(map(self.entry_of, heads))
        scopes: dict[str, list[MemoryEntry]] = defaultdict(list)
        for entry in entries:
            scopes[scope_of(entry.document)].append(entry)
        most = self.caps.of(place)
        over = {entry.id for each in scopes.values() for entry in surplus(each, most)}
        return _newest_first(entry for entry in entries if entry.id not in over)


def scope_of(document: MemoryDocument) -> str:
    """Where an entry holds: in a project, by its id; empty for everywhere, or in its session."""
    return document.project or "" if document.scope == "project" else ""


def seat_of(document: MemoryDocument) -> tuple[str, ...]:
    """Among which entries one is counted."""
    is_kept = document.state == "kept"
    return document.state, document.place, scope_of(document) if is_kept else ""


def holds_in(entry: MemoryEntry, project: str | None) -> bool:
    """Whether a global entry holds in a project; None: in any."""
    document = entry.document
    return project is None or document.scope == "everywhere" or document.project == project


def _newest_first(entries: Iterable[MemoryEntry]) -> list[MemoryEntry]:
    return sorted(entries, key=lambda entry: entry.age, reverse=True)
