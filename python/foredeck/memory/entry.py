"""An entry of memory as it is worked with, and what each place takes, for how long, and who leaves
it when it is full."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from foredeck.config import Config
from foredeck.errors import ForedeckError
from foredeck.memory.trust import Trust
from foredeck.model.ids import uuid7
from foredeck.model.memory import CATEGORIES, FACT_CHARS, Category, MemoryDocument, Place
from foredeck.store.clock import DAY_MS
from foredeck.store.protocol import Token

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
    """How many entries are kept: of one session, of one user, of one session's findings."""

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
    return MemoryCaps(expire_days=config.memory.expire_days)


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
