"""The time that may be spent waiting for layers, shared by all who wait for one answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Patience:
    """Seconds that are left. A layer that is behind takes in a batch even where none is."""

    left_s: float

    @contextmanager
    def spent(self) -> Iterator[float]:
        """Gives the seconds that are left; what the block takes of them is gone afterwards."""
        began = time.monotonic()
        try:
            yield self.left_s
        finally:
            self.left_s = max(0.0, self.left_s - (time.monotonic() - began))
