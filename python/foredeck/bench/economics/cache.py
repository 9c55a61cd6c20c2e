"""What a provider's prompt cache would hold: the ideal one, which keeps every prefix."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from foredeck.bench.economics.shapes import Shape

READ, WRITE = 0.1, 1.25
"""Price of a cached and of a newly written token, in uncached input tokens."""


@dataclass(frozen=True, slots=True)
class Hit:
    """How many characters of a prompt were found, and how many if nothing ever expired."""

    chars: float
    lasting: float


class PrefixCache:
    """The longest prefix of any earlier prompt, message by message, if used within `ttl_s`."""

    def __init__(self, ttl_s: float) -> None:
        self._ttl_ms = ttl_s * 1000
        self._used: dict[bytes, int] = {}

    def request(self, model: str, shapes: Sequence[Shape], head: float, time_ms: int) -> Hit:
        """Look a prompt up, then keep it. `head`: characters before the first message."""
        tip = hashlib.blake2b(model.encode(), digest_size=16).digest()
        hit = lasting = 0.0
        chars = head
        for number in range(len(shapes) + 1):
            if number:
                shape = shapes[number - 1]
                tip = hashlib.blake2b(tip + shape.hash, digest_size=16).digest()
                chars += shape.chars
            used = self._used.get(tip)
            if used is not None:
                lasting = chars
                if time_ms - used <= self._ttl_ms:
                    hit = chars
            self._used[tip] = time_ms
        return Hit(hit, lasting)
