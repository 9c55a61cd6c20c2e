"""The head: the block of foredeck's own before the chat, made of sections within one budget."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from foredeck.derived.layer import TimeBudget
from foredeck.model.quoting import name as named


class HeadSection(Protocol):
    """One part of the head: the project's rules, its notes, the active task.

    It is asked at the first call of a session, and again only when the whole prompt is rewritten
    anyway. What changes in between is said in the result of the tool that changed it.
    """

    @property
    def name(self) -> str:
        """What the section's line of its own says: `notes`, `active task`."""
        ...

    def text(self, limit: int) -> str:
        """What there is to say in at most `limit` characters; empty where there is nothing, or
        the limit is too small for anything of use.

        It may be asked more than once. The same state gives the same text: no clock, no counter, no
        unordered iteration.
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
    """A section of which something may have to leave the prompt at once, such as what the user has
    deleted."""

    def is_withdrawn(self, said: str) -> bool:
        """Whether `said`, which the prompt has of it, must leave the prompt; true only where `text`
        says something else. It is asked at every call."""
        ...


@runtime_checkable
class FollowingSection(HeadSection, Protocol):
    """A section made from a layer, which takes time to bring up to date where much is new in the
    store."""

    def follow(self, wait: TimeBudget) -> None:
        """Bring the layer up to date in the time that is left, while no call waits for the text."""
        ...


@runtime_checkable
class SectionWithFloor(HeadSection, Protocol):
    """A section for which the others leave a part of the head (`FLOOR`)."""

    @property
    def has_floor(self) -> bool:
        """Whether it is one: what the user has stated."""
        ...


# Fixed, and not measured: no byte may depend on what a provider has counted so far.
CHARS_PER_TOKEN = 4

WINDOW_SHARE = 0.02
"""Of the model's window, at most."""

GROWTH = 2
"""How many times longer it may be, each time that it is written again at no cost."""


@dataclass(frozen=True, slots=True)
class HeadBudget:
    """What the user allows, in tokens. Where `first` is 0 there is no head."""

    first: int = 200
    most: int = 1200

    def next(self, before: int) -> int:
        """The length after `before`, where the session can pay for more; 0: there was none."""
        return min(self.most, GROWTH * before) if before else self.least

    @property
    def least(self) -> int:
        """The length that it may have whether or not the session can pay for more."""
        return min(self.first, self.most)


def chars_of(tokens: int, window: int | None) -> int:
    """The characters that this many tokens are, for a model with this window."""
    if window:
        tokens = min(tokens, int(WINDOW_SHARE * window))
    return tokens * CHARS_PER_TOKEN


log = logging.getLogger(__name__)

FLOOR = 0.6
"""The part of the head that is left for what the user has stated, if that is so long."""

LEAST_CHARS = 60
"""A section that would get fewer is left out: no useful line is that short."""


def compose(sections: Sequence[HeadSection], limit: int) -> str:
    """The head, at most `limit` characters and what sections may have beyond them; empty where no
    section has anything to say. Sections come in the order given.

    The sections with a floor share what the others leave of the budget, and the floor at least; the
    others share the rest. Within each group a section that fits into an equal share is there in
    full; what it leaves is divided among the longer ones, each of which is cut to its share.
    """
    room = limit - len(head_opening())
    # Each is asked for its full text first: only then is it known which need less than their share.
    extra = [s.extra_chars if isinstance(s, ExtraSection) else 0 for s in sections]
    texts = {
        n: text for n, section in enumerate(sections) if (text := _text(section, room + extra[n]))
    }
    wanted = {n: max(0, len(text) - extra[n]) for n, text in texts.items()}
    stated = [
        n
        for n in texts
        if isinstance(section := sections[n], SectionWithFloor) and section.has_floor
    ]
    others = [n for n in texts if n not in stated]
    free = room - sum(wanted[n] for n in others)
    least = max(int(FLOOR * room), room * len(stated) // max(1, len(texts)))
    for numbers, part in ((stated, max(free, least)), (others, room)):
        part = min(part, room)
        smallest_first = sorted(numbers, key=lambda n: (wanted[n], n))
        for left, number in zip(range(len(numbers), 0, -1), smallest_first, strict=True):
            share = part // left
            if wanted[number] > share:
                texts[number] = _text(sections[number], share + extra[number])
            used = max(0, len(texts[number]) - extra[number])
            part, room = part - used, room - used
    body = "".join(text for _, text in sorted(texts.items()))
    return head_opening() + body.removesuffix("\n") if body else ""


def _text(section: HeadSection, limit: int) -> str:
    """A section under its line, at most `limit` characters with all its line breaks; empty where
    it has nothing to say in them."""
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
    """What a section says in a head; empty where it is not in it."""
    _, found, after = head.partition(head_section(name))
    return after.partition("\n[foredeck] ")[0] if found else ""


def head_opening() -> str:
    """Begins the block before the chat."""
    return "[foredeck] Background, not the user's words. The chat is newer.\n"


def head_section(name: str) -> str:
    """The line over one section of that block."""
    return f"[foredeck] {name}:\n"


def pool_line(name: str, about: str) -> str:
    """A file that is not in the chat, with the title and the tags of a note. It begins with what
    others wrote, and so not at the margin."""
    return f" {name}: {about}" if about else f" {name}"


def pool_rest(count: int, folders: Sequence[str], *, more: bool, listed: bool = True) -> str:
    """Ends a list of such files that is cut short; `more`: they lie in more folders than these.
    `listed`: the model has `activate`, which lists them."""
    where = ", ".join(f"{named(folder)}/" for folder in folders)
    others = " and elsewhere" if more else ""
    how = ': activate PATH, show "metadata"' if listed else ""
    return f"and {count:,} more in {where}{others}{how}"
