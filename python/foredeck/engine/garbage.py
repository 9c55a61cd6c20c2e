"""When garbage is looked for."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """Make many objects that are there to stay, as loading a long session does: looking for
    garbage among them again and again takes a fifth of the time, and finds none.

    What was made is not looked at later either; what is let go of goes all the same, but for
    objects that refer to each other in a circle.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.freeze()
            gc.enable()
