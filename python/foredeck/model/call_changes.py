"""What changes from one call to the next, with its stored form: rendered parts, and sets.

They are named tuples, since a session that is opened makes thousands of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar

T = TypeVar("T")

Form = Literal["host", "full", "same", "diff", "reference", "note", "dropped", "folded", "observed"]
"""`host`: all that the host has, with lines of ours where there are blocks. `full`: the content
with its handle. `same` and `diff`: said by reference to an earlier copy. `reference`: folded to a
line. `note`: a tool's short answer. `dropped`: left out, with no blocks at all. `folded`: a message
without some of its pieces. `observed`: left out as the last of a span; its blocks are the text that
covers the span."""


_WITHOUT_SLOTS = 7


class PartRow(NamedTuple):
    """What becomes of a message (`context.plan.ops`), as a record keeps it."""

    message: int
    """Its index."""
    form: Form
    packed: list[Any] | None
    """Its recipe, long texts moved to blobs; None: as the host has it."""
    subject: int | None = None
    """Handle of the object whose content it carries."""
    version: int | None = None
    """Which version of the object, by its ordinal in the session."""
    base: int | None = None
    """Index of the earlier message that it refers to."""
    text_hash: str | None = None
    slots: tuple[int, ...] = ()
    """The folded pieces of the message."""

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> PartRow:
        """The inverse of `to_row`."""
        if len(row) == _WITHOUT_SLOTS:
            return cls(*row)
        return cls(*row[:_WITHOUT_SLOTS], tuple(row[_WITHOUT_SLOTS]))  # type: ignore[call-arg]

    @property
    def shows(self) -> bool:
        """Whether the subject's content can be read in the message, with the base for a
        difference."""
        return self.form in ("full", "diff", "host")

    @property
    def is_gone(self) -> bool:
        """Whether the message does not go out."""
        return self.form in ("dropped", "observed")

    def to_row(self) -> list[Any]:
        """As a record keeps it: by position, `slots` only where there are some."""
        row = list(self[:_WITHOUT_SLOTS])
        return [*row, list(self.slots)] if self.slots else row


class Delta(NamedTuple, Generic[T]):
    """What has come into a set since the call before, and what has gone."""

    added: Sequence[T] = ()
    removed: Sequence[T] = ()

    @classmethod
    def of(cls, changes: Mapping[T, bool]) -> Delta[T]:
        """Of the members that have come (True) or gone (False), each side sorted."""
        ordered = sorted(changes.items())
        added = tuple(each for each, new in ordered if new)
        return cls(added, tuple(each for each, new in ordered if not new))

    @classmethod
    def from_record(cls, stored: Mapping[str, Sequence[T]], name: str = "") -> Delta[T]:
        """What is stored as `name+` and `name-`."""
        return cls(stored.get(name + "+", ()), stored.get(name + "-", ()))

    def to_record(self, name: str = "") -> dict[str, list[T]]:
        """The inverse of `from_record`; a side without members is left out."""
        sides: Iterable[tuple[str, Sequence[T]]] = (("+", self.added), ("-", self.removed))
        return {name + sign: list(members) for sign, members in sides if members}


_NONE: Delta[Any] = Delta()


class SetChanges(NamedTuple):
    """How the sets of a branch have changed at a call: objects by handle, messages by index."""

    pool: Delta[int] = _NONE
    active: Delta[int] = _NONE
    pinned: Delta[int] = _NONE
    expired: Delta[int] = _NONE
    """Messages whose content is no longer kept, whether it has left the prompt or not."""

    @classmethod
    def from_record(cls, stored: Mapping[str, Sequence[int]]) -> SetChanges:
        """The inverse of `to_record`."""
        if not stored:
            return NO_CHANGES
        return cls(*[_delta(stored, plus, minus) for plus, minus in _SIGNED])

    def to_record(self) -> dict[str, list[int]]:
        """As a record keeps them: `pool+`, `pool-`, `active+` and so on."""
        deltas = (self.pool, self.active, self.pinned, self.expired)
        pairs = zip(_SETS, deltas, strict=True)
        return {key: value for name, d in pairs for key, value in d.to_record(name).items()}


_SETS = ("pool", "active", "pinned", "expired")
_SIGNED = [(name + "+", name + "-") for name in _SETS]
NO_CHANGES = SetChanges()


def _delta(stored: Mapping[str, Sequence[int]], plus: str, minus: str) -> Delta[int]:
    # Most sets do not change at a call: thousands of records are read at once.
    if plus in stored or minus in stored:
        return Delta(stored.get(plus, ()), stored.get(minus, ()))
    return _NONE
