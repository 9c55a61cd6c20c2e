"""What writes into the head."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from foredeck.derived.layer import TimeBudget


class HeadSection(Protocol):
    """One part of the head: the project's rules, its notes, the task at work.

    It is asked at the first call of a session, and again only when the whole prompt is rewritten
    anyway. What changes in between is said in the result of the tool that changed it.
    """

    @property
    def name(self) -> str:
        """What the section's line of its own says: `notes`, `active task`."""
        ...

    def text(self, limit: int) -> str:
        """What there is to say in at most `limit` characters; empty where there is nothing.

        The same state gives the same text: no clock, no counter, no unordered iteration. A limit
        too small for anything of use gives an empty text. It may be asked more than once.
        """
        ...


@runtime_checkable
class ExtraSection(HeadSection, Protocol):
    """A section that the user has switched on by itself, and that makes the head longer."""

    @property
    def extra_chars(self) -> int:
        """How many characters it may have beyond the head's budget."""
        ...


@runtime_checkable
class WithdrawingSection(HeadSection, Protocol):
    """A section of which something may have to leave the prompt before all of it is rewritten
    anyway, such as what the user has deleted."""

    def is_withdrawn(self, said: str) -> bool:
        """Whether what the prompt has of it, `said`, must leave the prompt. True
        only where `text` says something else. It is asked at every call."""
        ...


@runtime_checkable
class FollowingSection(HeadSection, Protocol):
    """A section that is made from something worked out from the store, which takes time where much
    is new there."""

    def follow(self, wait: TimeBudget) -> None:
        """Do that now, while no call waits for the section's text, in the time that is left."""
        ...


@runtime_checkable
class SectionWithFloor(HeadSection, Protocol):
    """A section that others leave a part of the head for (`composing.FLOOR`)."""

    @property
    def has_floor(self) -> bool:
        """Whether it is one: what the user has stated."""
        ...
