"""Memory entries as one user sees them: what each place takes, and for how long."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foredeck.config import Config
from foredeck.errors import ForedeckError
from foredeck.memory.trust import Trust, TrustOf, User
from foredeck.model.identity import ENTRY, ShortNames, uuid7
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
from foredeck.store.protocol import Head, Scalar, Token
from foredeck.store.store import Store

PROPOSAL_DAYS = 30
"""Lifetime of a proposal."""

USE_NOTED_MS = DAY_MS
"""Uses this soon after the last noted one are not noted."""

_BLANKS = re.compile(r"[\s\x00-\x1f\x7f\x85\u2028\u2029\ufeff\u200b-\u200f\u202a-\u202e]+")


class MemoryRefused(ForedeckError):
    """An act on memory that is impossible; says why, and what to do instead."""

    exit_code = 2


class NoSuchEntry(MemoryRefused):
    """No entry is called so."""

    exit_code = 4


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """An entry's newest version, as one user sees it."""

    document: MemoryDocument
    token: Token
    trust: Trust

    @property
    def id(self) -> str:
        """`memory:` and a UUIDv7."""
        return self.document.id

    @property
    def parents(self) -> tuple[str, ...]:
        """Ids of what it was made from."""
        return tuple(self.document.provenance.parent_refs)

    @property
    def age(self) -> tuple[int, str]:
        """Sort key, oldest first."""
        return self.document.learned_ms, self.document.id


def mint_id(now_ms: int) -> str:
    return f"memory:{uuid7(now_ms)}"


@dataclass(frozen=True, slots=True)
class MemoryCaps:
    """Most entries per session, per user and project, and findings per session."""

    session: int = 50
    everywhere: int = 100
    findings: int = 100
    expire_days: int = 90
    """Days without use after which an unstated entry expires."""

    def of(self, place: Place) -> int:
        """The cap of a place."""
        return {"session": self.session, "global": self.everywhere, "findings": self.findings}[
            place
        ]


def caps_of(config: Config) -> MemoryCaps:
    """Caps and lifetime as configured."""
    section = config.memory
    return MemoryCaps(
        section.session_entries, section.global_entries, section.findings, section.expire_days
    )


def place_of(category: Category) -> Place:
    """The place of a category."""
    return next(place for place, ones in CATEGORIES.items() if category in ones)


def one_line(text: str, what: str = "fact") -> str:
    """A text on one line; raises `MemoryRefused` for one without visible words."""
    line = _BLANKS.sub(" ", text).strip()
    if len(line) > FACT_CHARS:
        raise MemoryRefused(
            f"The {what} has {len(line):,} characters, and {FACT_CHARS} are kept: say it shorter."
        )
    return line


def said_text(text: str) -> str:
    """As `one_line`, but not empty."""
    line = one_line(text)
    if not line:
        raise MemoryRefused("There is nothing to remember: the text is empty.")
    return line


def check_category(place: Place, category: Category) -> None:
    """Raises `MemoryRefused` if a place does not take a category."""
    if category not in CATEGORIES[place]:
        accepted = " or ".join(CATEGORIES[place])
        raise MemoryRefused(f"A {category} is no {place} memory: that takes {accepted}.")


def keeping_order(entry: MemoryEntry) -> tuple[bool, int, str]:
    """Sort key; what stays longest is last."""
    # What the user stated first, or a flood of derived entries could push it out.
    return (entry.trust == "user-stated", *entry.age)


def surplus(kept: Sequence[MemoryEntry], most: int) -> list[MemoryEntry]:
    """Entries that leave so that `most` stay."""
    return sorted(kept, key=keeping_order)[: max(0, len(kept) - most)]


def has_expired(entry: MemoryEntry, now_ms: int, days: int) -> bool:
    document = entry.document
    if document.state == "proposed":
        return now_ms - document.created_ms > PROPOSAL_DAYS * DAY_MS
    if document.state != "kept" or entry.trust == "user-stated":
        return False
    return now_ms - document.used_ms > days * DAY_MS


_MOST_NAMED = 5


class MemoryReader:
    """Reads one user's memory; others on the store have their own."""

    def __init__(self, store: Store, user: User, caps: MemoryCaps | None = None) -> None:
        self.store = store
        self.user = user
        self.caps = caps or MemoryCaps()
        self.trust = TrustOf(store, user)
        self._list = list_of_user(user.id)
        self._names: tuple[Token | None, ShortNames] = (None, ShortNames(ENTRY))

    def get(self, id: str) -> MemoryEntry | None:
        """Any entry, whatever its owner and state."""
        head = self.store.head(id)
        return None if head is None or head.type != "memory" else self.entry_of(head)

    def all(
        self, place: Place | None = None, state: MemoryState | None = None
    ) -> list[MemoryEntry]:
        """This user's entries, newest first."""
        where: dict[str, Scalar | None] = {"owner": self.user.id}
        where |= {} if place is None else {"place": place}
        where |= {} if state is None else {"state": state}
        return _newest_first(map(self.entry_of, self.store.query("memory", where)))

    def of_others(self) -> list[MemoryEntry]:
        """Others' entries with sessions stored here, newest first; only owners change them."""
        entries = map(self.entry_of, self.store.query("memory"))
        return _newest_first(
            entry
            for entry in entries
            if entry.document.owner != self.user.id and entry.document.place != "global"
        )

    def of_session(self, session: str, place: Place) -> list[MemoryEntry]:
        """A session's entries, newest first, up to the cap."""
        where: dict[str, Scalar | None] = {"session": session, "place": place, "state": "kept"}
        return self._capped(self.store.query("memory", where), place)

    def of_user(self, project: str | None = None) -> list[MemoryEntry]:
        """The user's entries, newest first, up to the cap; with `project` only those valid
        there."""
        # All of it carries their word. What does not was written by others in their name, or before
        # their key was lost.
        entries = self._capped(self._of_user(), "global")
        stated = [entry for entry in entries if entry.trust == "user-stated"]
        return [entry for entry in stated if holds_in(entry, project)]

    def crowded_out(self) -> int:
        """Number of stated entries beyond the cap."""
        stated = sum(self.entry_of(head).trust == "user-stated" for head in self._of_user())
        return stated - len(self.of_user())

    def _of_user(self) -> list[Head]:
        where: dict[str, Scalar | None] = {"object": self._list, "place": "global", "state": "kept"}
        return self.store.query("memory", where)

    def proposals(self) -> list[MemoryEntry]:
        """Proposals, newest first."""
        where: dict[str, Scalar | None] = {"object": self._list, "state": "proposed"}
        return _newest_first(map(self.entry_of, self.store.query("memory", where)))

    def find(self, name: str) -> MemoryEntry:
        """The entry of a name, the user's own first. Raises `MemoryRefused`."""
        if not name.strip():
            raise NoSuchEntry("Say which entry, by its name, such as m-k3f9.")
        names = self._own_names()
        ids = names.find(name)
        if not ids:
            names = ShortNames(ENTRY, (entry.id for entry in self.of_others()))
            ids = names.find(name)
        if len(ids) > 1:
            names_text = ", ".join(map(names.name, ids[:_MOST_NAMED]))
            raise MemoryRefused(
                f"{name!r} means {len(ids)} entries: {names_text}. Give more letters."
            )
        entry = self.get(ids[0]) if ids else None
        if entry is None:
            raise NoSuchEntry(
                f"There is no entry {name!r}. `foredeck memory list --all` lists every one."
            )
        return entry

    def name(self, id: str) -> str:
        return self._own_names().name(id)

    def _own_names(self) -> ShortNames:
        latest = self.store.latest()
        if latest is None or self._names[0] != latest:
            heads = self.store.query("memory", {"owner": self.user.id})
            self._names = latest, ShortNames(ENTRY, (head.id for head in heads))
        return self._names[1]

    def descendants(self, id: str) -> list[MemoryEntry]:
        """Entries derived from an object, directly or not."""
        children: dict[str, list[Head]] = {}
        for head in self.store.query("memory"):
            fields = head.fields
            for parent in {*fields["provenance"]["parent_refs"], fields.get("turn")}:
                children.setdefault(str(parent), []).append(head)
        by_id: dict[str, Head] = {}
        waiting = [id]
        while waiting:
            for head in children.get(waiting.pop(), ()):
                if head.id not in by_id and head.id != id:
                    by_id[head.id] = head
                    waiting.append(head.id)
        return _newest_first(map(self.entry_of, by_id.values()))

    def entry_of(self, head: Head) -> MemoryEntry:
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
    """An entry's project, empty for everywhere, or its session."""
    return document.project or "" if document.scope == "project" else ""


def seat_of(document: MemoryDocument) -> tuple[str, ...]:
    """The group in which an entry is counted."""
    is_kept = document.state == "kept"
    return document.state, document.place, scope_of(document) if is_kept else ""


def holds_in(entry: MemoryEntry, project: str | None) -> bool:
    document = entry.document
    return project is None or document.scope == "everywhere" or document.project == project


def _newest_first(entries: Iterable[MemoryEntry]) -> list[MemoryEntry]:
    return sorted(entries, key=lambda entry: entry.age, reverse=True)
