"""Names that a text holds and nothing else in view does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Set

from foredeck.context.messages.identifiers import identifiers

_HEAD = "names:"


def unheld_names(
    text: str, held: Set[str], chars: int, *, told_already: Set[str] = frozenset()
) -> str:
    """`names: ...`, shortest first, as many as fit; empty where there are none.

    `held`: names that can be read elsewhere; `told_already`: those in the line before.

    A path stands for its last part too, which is not told again.
    """
    names = identifiers(text) - held - told_already
    # A number tells nothing of what it counts: it is a name only where there is no other.
    names = frozenset(name for name in names if not name.isdecimal()) or names
    tails = {name.rpartition("/")[2] for name in names if "/" in name}
    told: list[str] = []
    room = chars - len(_HEAD)
    for name in _shortest_first(names - tails):
        room -= len(name) + 1
        if room < 0:
            break
        told.append(name)
    return " ".join([_HEAD, *told]) if told else ""


def _shortest_first(names: Set[str]) -> Iterator[str]:
    """Names by length, those of one length in order; sorted only as far as they are taken."""
    by_length: defaultdict[int, list[str]] = defaultdict(list)
    for name in names:
        by_length[len(name)].append(name)
    for length in sorted(by_length):
        yield from sorted(by_length[length])
