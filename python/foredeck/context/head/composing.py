"""One text of all sections of the head, within one budget."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from foredeck.context.head.lines import head_opening, head_section
from foredeck.context.head.section import HeadSection
from foredeck.context.quoting import inside_ours

log = logging.getLogger(__name__)

LEAST_CHARS = 60
"""A section that would get fewer is left out: not one line of use fits into them."""


def compose(sections: Sequence[HeadSection], limit: int) -> str:
    """The head, at most `limit` characters; empty where no section has anything to say.

    Sections stand in the order given, the stablest first. A long one leaves the others their share:
    what fits into an equal part of the budget stands in full, and the rest is for the others.
    """
    room = limit - len(head_opening())
    # Asked with everything first: only then is it known who needs less than an equal share.
    wanted = {n: text for n, section in enumerate(sections) if (text := _text(section, room))}
    smallest_first = sorted(wanted, key=lambda n: (len(wanted[n]), n))
    texts: dict[int, str] = {}
    for left, number in zip(range(len(wanted), 0, -1), smallest_first, strict=True):
        text, share = wanted[number], room // left
        if len(text) > share:
            text = _text(sections[number], share)
        texts[number] = text
        room -= len(text)
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
        text = inside_ours(section.text(room).strip())
    except Exception:
        # The call goes out, whatever becomes of one section.
        log.exception("the section %r of the head failed", section.name)
        return ""
    # A space more than allowed comes from quoting; a section that writes more than it may is cut,
    # since the budget is what the user was promised.
    return f"{line}{text[:room].rstrip()}\n" if text else ""
