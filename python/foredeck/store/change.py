"""Compare-and-put: a change that is made again on what others have written in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from foredeck.errors import Conflict, ForedeckError
from foredeck.store.protocol import ATTEMPTS

T = TypeVar("T")


def changed(attempt: Callable[[], T], busy: ForedeckError, attempts: int = ATTEMPTS) -> T:
    """What `attempt` returns. It reads what it changes and commits with what it `expect`s; where
    that raises `Conflict`, it is called again and must read anew.

    Raises `busy` where others were faster each time.
    """
    for _ in range(attempts):
        try:
            return attempt()
        except Conflict:
            continue
    raise busy
