"""Many things, a portion at a time. (`itertools.batched` came with Python 3.12.)"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def portions(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in their order, at most `size` at a time."""
    rest = iter(items)
    while portion := list(islice(rest, size)):
        yield portion
