"""When Python looks for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Collect no garbage while many lasting objects are made, as when a long session is loaded:
    collecting takes a fifth of the time then, and finds nothing.

    The objects made are left out of later collections, too. They are still freed once nothing
    refers to them, except for those in a reference cycle.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.freeze()
            gc.enable()
