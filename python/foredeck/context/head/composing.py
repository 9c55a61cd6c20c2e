"""One text of all sections of the head, within one budget."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from foredeck.context.head.lines import head_opening, head_section
from foredeck.context.head.section import ExtraSection, HeadSection

log = logging.getLogger(__name__)

LEAST_CHARS = 60
"""A section that would get fewer is left out: no useful line is that short."""


def compose(sections: Sequence[HeadSection], limit: int) -> str:
    """The head, at most `limit` characters and what sections may have beyond them; empty where no
    section has anything to say.

    Sections stand in the order given. One that fits into an equal share of the budget stands in
    full; what it leaves is divided among the longer ones, each of which is cut to its share.
    """
    room = limit - len(head_opening())
    # Each is asked for its full text first: only that tells which need less than an equal share.
    extra = [s.extra_chars if isinstance(s, ExtraSection) else 0 for s in sections]
    texts = {
        n: text for n, section in enumerate(sections) if (text := _text(section, room + extra[n]))
    }
    smallest_first = sorted(texts, key=lambda n: (len(texts[n]) - extra[n], n))
    for left, number in zip(range(len(texts), 0, -1), smallest_first, strict=True):
        share = room // left
        if len(texts[number]) > share + extra[number]:
            texts[number] = _text(sections[number], share + extra[number])
        room -= max(0, len(texts[number]) - extra[number])
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
    """What a section says in a head; empty where it stands not in it."""
    _, found, after = head.partition(head_section(name))
    return after.partition("\n[foredeck] ")[0] if found else ""
