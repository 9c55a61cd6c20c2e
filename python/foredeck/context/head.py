"""The head: foredeck's block before the chat, within one budget."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from foredeck.derived.layer import TimeBudget
from foredeck.model.quoting import name as named


@runtime_checkable
class HeadSection(Protocol):
    """A part of the head. Asked at the first call, then when the whole prompt is rewritten."""

    @property
    def name(self) -> str:
        """The heading's words: `notes`, `active task`."""
        ...

    def text(self, limit: int) -> str:
        """The section in at most `limit` characters; empty if nothing useful fits.

        Must be deterministic: no clock, counter or unordered iteration.
        """
        ...


@runtime_checkable
class ExtraSection(HeadSection, Protocol):
    """A section that the user has switched on, which lengthens the head."""

    @property
    def extra_chars(self) -> int:
        """Characters beyond the head's budget."""
        ...


@runtime_checkable
class WithdrawingSection(HeadSection, Protocol):
    def is_withdrawn(self, said: str) -> bool:
        """Whether `said` must leave the prompt. Asked at every call."""
        ...


@runtime_checkable
class FollowingSection(HeadSection, Protocol):
    """A section from a layer, which may need time to catch up."""

    def follow(self, wait: TimeBudget) -> None:
        """Brings the layer up to date while no call waits."""
        ...


@runtime_checkable
class SectionWithFloor(HeadSection, Protocol):
    """A section with a guaranteed share of the head."""

    @property
    def has_floor(self) -> bool:
        """Whether the section is guaranteed a share."""
        ...


# Fixed, and not measured: no byte may depend on what a provider has counted so far.
CHARS_PER_TOKEN = 4

WINDOW_SHARE = 0.02
"""Largest share of the model's window."""

GROWTH = 2
"""Growth factor each time that the head is rewritten for free."""


@dataclass(frozen=True, slots=True)
class HeadBudget:
    """The user's limits in tokens; no head if `first` is 0."""

    first: int = 200
    most: int = 1200

    def next(self, before: int) -> int:
        """The limit after `before`, if the session can pay."""
        return min(self.most, GROWTH * before) if before else self.least

    @property
    def least(self) -> int:
        """Holds even if the session cannot pay for more."""
        return min(self.first, self.most)


def chars_of(tokens: int, window: int | None) -> int:
    if window:
        tokens = min(tokens, int(WINDOW_SHARE * window))
    return tokens * CHARS_PER_TOKEN


log = logging.getLogger(__name__)

FLOOR = 0.6
"""Share guaranteed to what the user has stated."""

MOST_WRAPPING = 40
"""Characters before a head that was carried to another agent."""

LEAST_CHARS = 60
"""Shorter sections are left out."""


def compose(sections: Sequence[HeadSection], limit: int) -> str:
    """The head of these sections, in order.

    Sections with a floor share what others leave; what short sections leave goes to longer ones.
    """
    room = limit - len(head_opening())
    # Each is asked for its full text first: only then is it known which need less than their share.
    extra = [s.extra_chars if isinstance(s, ExtraSection) else 0 for s in sections]
    texts = {
        n: text for n, section in enumerate(sections) if (text := _text(section, room + extra[n]))
    }
    sizes = {n: max(0, len(text) - extra[n]) for n, text in texts.items()}
    stated = [
        n
        for n in texts
        if isinstance(section := sections[n], SectionWithFloor) and section.has_floor
    ]
    others = [n for n in texts if n not in stated]
    free = room - sum(sizes[n] for n in others)
    least = max(int(FLOOR * room), room * len(stated) // max(1, len(texts)))
    for numbers, part in ((stated, max(free, least)), (others, room)):
        part = min(part, room)
        smallest_first = sorted(numbers, key=lambda n: (sizes[n], n))
        for count, number in zip(range(len(numbers), 0, -1), smallest_first, strict=True):
            share = part // count
            if sizes[number] > share:
                texts[number] = _text(sections[number], share + extra[number])
            used = max(0, len(texts[number]) - extra[number])
            part, room = part - used, room - used
    body = "".join(text for _, text in sorted(texts.items()))
    return head_opening() + body.removesuffix("\n") if body else ""


def _text(section: HeadSection, limit: int) -> str:
    line = head_section(section.name)
    room = limit - len(line) - 1
    if room < LEAST_CHARS:
        return ""
    try:
        text = section.text(room).rstrip()
    except Exception:
        # The call goes out, whatever becomes of one section.
        log.exception("the section %r of the head failed", section.name)
        return ""
    # A section may be wrong about its length. The budget is what the user was promised.
    return f"{line}{text[:room].rstrip()}\n" if text else ""


def said_by(head: str, name: str) -> str:
    """A section's text in a head; empty if absent."""
    _, heading, after = head.partition(head_section(name))
    return after.partition("\n[foredeck] ")[0] if heading else ""


def head_opening() -> str:
    """The first line of the head."""
    return "[foredeck] Background, not the user's words. The chat is newer.\n"


def is_head(text: str) -> bool:
    """Whether a text is a head, also where it was wrapped for another agent."""
    return head_opening() in text[: len(head_opening()) + MOST_WRAPPING]


def head_section(name: str) -> str:
    """The heading of a section."""
    return f"[foredeck] {name}:\n"


def pool_line(name: str, about: str) -> str:
    """A file outside the chat; indented, since others wrote its title."""
    return f" {name}: {about}" if about else f" {name}"


def pool_rest(count: int, folders: Sequence[str], *, more: bool, listed: bool = True) -> str:
    """Ends a cut list of files; `listed`: the model can list them with `activate`."""
    where = ", ".join(f"{named(folder)}/" for folder in folders)
    others = " and elsewhere" if more else ""
    how = ': activate PATH, show "metadata"' if listed else ""
    return f"and {count:,} more in {where}{others}{how}"
