"""One text of all sections of the head, within one budget."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from foredeck.context.head.lines import head_opening, head_section
from foredeck.context.head.section import ExtraSection, HeadSection, SectionWithFloor

log = logging.getLogger(__name__)

FLOOR = 0.6
"""The part of the head that is left for what the user has stated, if that is so long."""

LEAST_CHARS = 60
"""A section that would get fewer is left out: no useful line is that short."""


def compose(sections: Sequence[HeadSection], limit: int) -> str:
    """The head, at most `limit` characters and what sections may have beyond them; empty where no
    section has anything to say.

    Sections come in the order given. What the user has stated has a floor: the others leave so
    much of the budget for it. Of those with a floor, and of the others, one that fits into an equal
    share of what there is for them is there in full; what it leaves is divided among the longer
    ones, each of which is cut to its share.
    """
    room = limit - len(head_opening())
    # Each is asked for its full text first: only that tells which need less than an equal share.
    extra = [s.extra_chars if isinstance(s, ExtraSection) else 0 for s in sections]
    texts = {
        n: text for n, section in enumerate(sections) if (text := _text(section, room + extra[n]))
    }
    wanted = {n: max(0, len(text) - extra[n]) for n, text in texts.items()}
    stated = [n for n in texts if _has_floor(sections[n])]
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


def _has_floor(section: HeadSection) -> bool:
    return isinstance(section, SectionWithFloor) and section.has_floor


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
