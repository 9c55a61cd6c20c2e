"""How many documents one request asks for."""

from __future__ import annotations

from collections.abc import Iterator

from foredeck.model.portions import portions

CHUNK = 500
"""How many ids one query asks for."""
FEW = 4
"""Up to this many documents are fetched one by one: a query takes as long as four requests."""


def chunks(items: list[str]) -> Iterator[list[str]]:
    """The items, `CHUNK` at a time."""
    return portions(items, CHUNK)
