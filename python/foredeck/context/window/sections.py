"""The sections of a summary within its length: which lines of each are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foredeck.context.wording import more_lines

SHARES = {"Asked": 0.32, "Files": 0.24, "Answers": 0.2, "Errors": 0.12, "Open": 0.12}
"""Of the room, by section; what one does not need is given to those that follow."""

DONE_SHARE = 0.1
"""Of finished work, where there is any: the others share what it leaves."""

GAP_CHARS = 40
"""What the line that says how many were left out takes, at most."""


@dataclass(slots=True)
class SummaryLine:
    """A line, and the turn that it is about."""

    text: str
    turn: int


def fit_sections(sections: Mapping[str, Sequence[SummaryLine]], room: int) -> list[str]:
    """The sections under their names, within a number of characters."""
    wanted = {name: _size(lines) for name, lines in sections.items()}
    shares = _shares(has_done="Done" in sections)
    spare = max(0, room - sum(min(wanted[n], int(room * s)) for n, s in shares.items()))
    shown: list[str] = []
    for name, lines in sections.items():
        allowed = min(wanted[name], int(room * shares[name]) + spare)
        spare -= max(0, allowed - int(room * shares[name]))
        kept = _keep(lines, allowed)
        if kept:
            shown += [f"{name}:", *kept]
    return shown


def _shares(*, has_done: bool) -> dict[str, float]:
    if not has_done:
        return SHARES
    return {
        **{name: share * (1 - DONE_SHARE) for name, share in SHARES.items()},
        "Done": DONE_SHARE,
    }


def _size(lines: Sequence[SummaryLine]) -> int:
    return sum(len(line.text) + 1 for line in lines)


def _keep(lines: Sequence[SummaryLine], room: int) -> list[str]:
    """The first line and as many of the newest as fit; a line says what is left out."""
    if _size(lines) <= room:
        return [line.text for line in lines]
    first = list(lines[:1]) if _size(lines[:1]) + GAP_CHARS < room else []
    left = room - _size(first) - GAP_CHARS
    newest: list[SummaryLine] = []
    for line in reversed(lines[len(first) :]):
        left -= len(line.text) + 1
        if left < 0:
            break
        newest.insert(0, line)
    out = lines[len(first) : len(lines) - len(newest)]
    if not out or not (first or newest):
        return [line.text for line in [*first, *newest]]
    gone = more_lines(len(out), out[0].turn, out[-1].turn)
    return [*(line.text for line in first), gone, *(line.text for line in newest)]
