"""Names that a text holds and nothing else in view does."""

from __future__ import annotations

from collections.abc import Set

from foredeck.context.identifiers import identifiers

_HEAD = "names:"


def unheld_names(text: str, held: Set[str], chars: int) -> str:
    """`names: ...`, shortest first, as many as fit; empty where there are none.

    A path stands for its last part too, which is not told again.
    """
    names = identifiers(text) - held
    tails = {name.rpartition("/")[2] for name in names if "/" in name}
    told, room = [], chars - len(_HEAD)
    for name in sorted(sorted(names - tails), key=len):
        room -= len(name) + 1
        if room < 0:
            break
        told.append(name)
    return " ".join([_HEAD, *told]) if told else ""
