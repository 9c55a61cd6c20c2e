"""Last uses of a message list as they are kept between processes.

They follow from the messages: where they are lost, or of other messages, these are read again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from foredeck.context.plan.plan import Plan
from foredeck.context.policies.policy import UseRule
from foredeck.model.canonical import hash_of_modules

DECIDED_BY = (
    *("context/messages/items.py", "context/plan/ops.py"),
    *("context/plan/plan.py", "context/policies/kept.py"),
    *("context/policies/pieces.py", "context/policies/uses.py", "context/rendering/context.py"),
    *("model/names.py", "sources/tool_calls.py"),
)
"""The modules that decide what counts as a use, a piece or an identifier."""

# Reading a thousand calls takes five times as long as taking over what was found in them. Most of
# that is names, which the first call after a pause may not need: they stay packed until then.
Unpack = Callable[[], bytes]
"""Gives bytes that were kept, as often as it is asked."""


@dataclass(frozen=True, slots=True)
class KeptHolders:
    """By identifier, the pieces that are recognised by it, by their numbers."""

    # In few long texts and lists, which are read back much faster than as many short ones.
    unpack: Unpack
    """Gives JSON: for each number of pieces the identifiers that so many hold, in one text, and
    for one after the other the numbers of these."""

    @classmethod
    def of(cls, holders: Mapping[str, tuple[int, ...]]) -> Self:
        """These holders."""
        found: dict[int, tuple[list[str], list[int]]] = {}
        for name, numbers in holders.items():
            names, flat = found.setdefault(len(numbers), ([], []))
            names.append(name)
            flat.extend(numbers)
        by_count = [(count, " ".join(names), flat) for count, (names, flat) in found.items()]
        packed = json.dumps(by_count).encode()
        return cls(lambda: packed)

    def to_dict(self) -> dict[str, tuple[int, ...]]:
        """The inverse of `of`."""
        holders: dict[str, tuple[int, ...]] = {}
        for count, names, flat in json.loads(self.unpack()):
            numbers = zip(*[iter(flat)] * count, strict=True)
            holders.update(zip(names.split(" "), numbers, strict=True))
        return holders


class KeptNames(Mapping[int, str]):
    """Messages with all identifiers in them, spaces between these, as far as they were searched."""

    __slots__ = ("_names", "unpack")

    def __init__(self, unpack: Unpack) -> None:
        """`unpack` gives JSON: the indexes of the messages, and their lines in one text."""
        self.unpack = unpack
        self._names: dict[int, str] | None = None

    @classmethod
    def of(cls, names: Mapping[int, str]) -> Self:
        """These names."""
        packed = json.dumps([list(names), "\n".join(names.values())]).encode()
        return cls(lambda: packed)

    def _unpacked(self) -> dict[int, str]:
        if self._names is None:
            indexes, text = json.loads(self.unpack())
            lines = text.split("\n") if indexes else []
            self._names = dict(zip(indexes, lines, strict=True))
        return self._names

    def __getitem__(self, index: int) -> str:
        return self._unpacked()[index]

    def __iter__(self) -> Iterator[int]:
        return iter(self._unpacked())

    def __len__(self) -> int:
        return len(self._unpacked())


@dataclass(frozen=True, slots=True)
class KeptUses:
    """What was found of the first `count` messages of a list."""

    tip: str
    """The rolling hash over these messages."""
    count: int
    cwd: str
    rule: UseRule
    last: list[int]
    """At which model call each piece of content was last used, in the order of the pieces."""
    holders: KeptHolders = field(compare=False)
    seen: KeptNames = field(compare=False)

    def fits(self, plan: Plan, cwd: str, rule: UseRule) -> bool:
        """Whether a list begins with these very messages, and would be read in the same way."""
        if (self.cwd, self.rule) != (cwd, rule) or not 0 < self.count <= len(plan):
            return False
        return plan.tips[self.count - 1] == self.tip

    def to_streams(self) -> list[bytes]:
        """As a file holds it: what is needed at once, then the names."""
        names = ("tip", "count", "cwd", "last")
        first: dict[str, Any] = {name: getattr(self, name) for name in names}
        first |= {"format": hash_of_modules(DECIDED_BY), "rule": asdict(self.rule)}
        return [json.dumps(first).encode(), self.holders.unpack(), self.seen.unpack()]

    @classmethod
    def from_streams(cls, streams: Sequence[Unpack]) -> KeptUses | None:
        """The inverse of `to_streams`; None for what other code has written."""
        try:
            first, holders, seen = streams
            fields = json.loads(first())
            if fields.pop("format") != hash_of_modules(DECIDED_BY):
                return None
            fields["rule"] = UseRule(**fields["rule"])
            return cls(**fields, holders=KeptHolders(holders), seen=KeptNames(seen))
        except (ValueError, TypeError, KeyError, AttributeError, OSError):
            return None
