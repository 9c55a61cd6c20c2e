"""Reasoning that the model lacks, as a call record keeps it: which blocks, and how much it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from foredeck.model.figures import counted, short_tokens

BlockSpot = tuple[int, int]
"""A block of a message of the host's: the index of the message, and of the block in it."""


class LostSum(NamedTuple):
    """How much reasoning the model lacks."""

    blocks: int = 0
    """That foredeck has left out."""
    tokens: int = 0
    """Of these blocks."""
    dropped: int = 0
    """Blocks that the provider has kept from the model, by its own word."""
    dropped_tokens: int = 0

    def __bool__(self) -> bool:
        return bool(self.blocks or self.dropped)

    @property
    def text(self) -> str:
        """`12 blocks of reasoning, about 8.4k tokens: 10 left out by foredeck, 2 dropped by the
        provider`; empty for none."""
        if not self:
            return ""
        blocks = counted(self.blocks + self.dropped, "block")
        sides = ((self.blocks, "left out by foredeck"), (self.dropped, "dropped by the provider"))
        who = ", ".join(f"{count:,} {word}" for count, word in sides if count)
        tokens = short_tokens(self.tokens + self.dropped_tokens)
        return f"{blocks} of reasoning, about {tokens} tokens: {who}"

    def plus(self, other: LostSum) -> LostSum:
        """Both together."""
        return LostSum(*(one + more for one, more in zip(self, other, strict=True)))


class LostReasoning(NamedTuple):
    """Blocks of sealed reasoning that the model lacks since a call. Each is counted once, however
    often a provider repeats it."""

    ours: Sequence[BlockSpot] = ()
    """Those that foredeck leaves out of it."""
    provider: Sequence[BlockSpot] = ()
    """Those that the provider has kept from the model, as is known since."""
    tokens: int = 0
    provider_tokens: int = 0

    @property
    def spots(self) -> set[BlockSpot]:
        """All of them."""
        return {*self.ours, *self.provider}

    @property
    def sum(self) -> LostSum:
        """How much that is."""
        counts = len(self.ours), self.tokens, len(self.provider), self.provider_tokens
        return LostSum(*counts)

    @classmethod
    def from_record(cls, stored: Mapping[str, Any]) -> LostReasoning:
        """The inverse of `to_record`."""
        ours, provider = (
            tuple(map(tuple, stored.get(name) or ())) for name in ("ours", "provider")
        )
        return cls(ours, provider, *(stored.get("tokens") or (0, 0)))

    def to_record(self) -> dict[str, Any]:
        """As a record keeps it: empty for nothing."""
        spots = {"ours": self.ours, "provider": self.provider}
        kept = {name: [list(spot) for spot in each] for name, each in spots.items() if each}
        return kept and {**kept, "tokens": [self.tokens, self.provider_tokens]}


NOTHING_LOST = LostReasoning()
