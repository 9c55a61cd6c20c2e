"""Lost reasoning as call records keep it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from foredeck.model.figures import counted, short_count

BlockSpot = tuple[int, int]


class LostSum(NamedTuple):
    """How much reasoning the model lacks."""

    blocks: int = 0
    """Left out by foredeck."""
    tokens: int = 0
    """Of these blocks."""
    dropped: int = 0
    """Reported by the provider as dropped."""
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
        tokens = short_count(self.tokens + self.dropped_tokens)
        return f"{blocks} of reasoning, about {tokens} tokens: {who}"

    def plus(self, other: LostSum) -> LostSum:
        return LostSum(*(one + more for one, more in zip(self, other, strict=True)))


class LostReasoning(NamedTuple):
    """Sealed reasoning newly lost with a call; each block counts once."""

    ours: Sequence[BlockSpot] = ()
    """Left out by foredeck."""
    provider: Sequence[BlockSpot] = ()
    """Dropped by the provider, as reported since."""
    tokens: int = 0
    provider_tokens: int = 0

    @property
    def spots(self) -> set[BlockSpot]:
        return {*self.ours, *self.provider}

    @property
    def sum(self) -> LostSum:
        counts = len(self.ours), self.tokens, len(self.provider), self.provider_tokens
        return LostSum(*counts)

    @classmethod
    def from_record(cls, stored: Mapping[str, Any]) -> LostReasoning:
        ours, provider = (
            tuple(map(tuple, stored.get(name) or ())) for name in ("ours", "provider")
        )
        return cls(ours, provider, *(stored.get("tokens") or (0, 0)))

    def to_record(self) -> dict[str, Any]:
        """As stored; empty for nothing."""
        spots = {"ours": self.ours, "provider": self.provider}
        record = {name: [list(spot) for spot in each] for name, each in spots.items() if each}
        return record and {**record, "tokens": [self.tokens, self.provider_tokens]}


NOTHING_LOST = LostReasoning()
