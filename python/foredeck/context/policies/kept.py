"""Last uses of a message list as they are kept between processes.

They follow from the messages, so whoever has lost them, or finds that they are of other messages,
reads the messages again. Reading a thousand calls takes five times as long as taking these over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self

from foredeck.context.messages.conversation import Conversation
from foredeck.context.policies.policy import UseRule
from foredeck.model.code import hash_of_modules

DECIDED_BY = (
    *("context/messages/conversation.py", "context/messages/identifiers.py"),
    *("context/messages/items.py", "context/messages/parts.py", "context/policies/kept.py"),
    *("context/policies/pieces.py", "context/policies/uses.py", "context/rendering/view.py"),
    *("sources/edits.py", "sources/toolpaths.py"),
)
"""The modules that decide what counts as a use, a piece or an identifier."""


@dataclass(frozen=True, slots=True)
class KeptHolders:
    """By identifier, the pieces that are recognised by it, by their numbers; in few long texts and
    lists, which are read back much faster than as many short ones."""

    by_count: list[tuple[int, str, list[int]]]
    """For each number of pieces: the identifiers that so many hold, and for one after the other
    the numbers of these."""

    @classmethod
    def of(cls, holders: Mapping[str, tuple[int, ...]]) -> Self:
        """These holders."""
        found: dict[int, tuple[list[str], list[int]]] = {}
        for name, numbers in holders.items():
            names, flat = found.setdefault(len(numbers), ([], []))
            names.append(name)
            flat.extend(numbers)
        return cls([(count, " ".join(names), flat) for count, (names, flat) in found.items()])

    @property
    def highest(self) -> int:
        """The number of the last piece; -1 where there is none."""
        return max((max(flat) for _, _, flat in self.by_count), default=-1)

    def to_dict(self) -> dict[str, tuple[int, ...]]:
        """The inverse of `of`."""
        holders: dict[str, tuple[int, ...]] = {}
        for count, names, flat in self.by_count:
            numbers = zip(*[iter(flat)] * count, strict=True)
            holders.update(zip(names.split(" "), numbers, strict=True))
        return holders


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
    holders: KeptHolders
    seen: list[tuple[int, str]]
    """Messages with all the identifiers in them, as far as they were looked for."""

    def fits(self, conversation: Conversation, cwd: str, rule: UseRule) -> bool:
        """Whether a list begins with these very messages, and would be read in the same way."""
        if (self.cwd, self.rule) != (cwd, rule) or not 0 < self.count <= len(conversation):
            return False
        return conversation.tips[self.count - 1] == self.tip

    def is_of(self, pieces: int) -> bool:
        """Whether it says something of so many pieces, and of no others."""
        return len(self.last) == pieces and self.holders.highest < pieces

    def to_bytes(self) -> bytes:
        """As a file holds it."""
        fields = {
            **{name: getattr(self, name) for name in ("tip", "count", "cwd", "last")},
            "rule": asdict(self.rule),
            "holders": self.holders.by_count,
            "seen": [[index for index, _ in self.seen], "\n".join(text for _, text in self.seen)],
        }
        return json.dumps({"format": hash_of_modules(DECIDED_BY), **fields}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> KeptUses | None:
        """The inverse of `to_bytes`; None for what other code has written."""
        try:
            fields = json.loads(data)
            if fields.pop("format") != hash_of_modules(DECIDED_BY):
                return None
            fields["rule"] = UseRule(**fields["rule"])
            holders = KeptHolders([(count, text, flat) for count, text, flat in fields["holders"]])
            indexes, texts = fields["seen"]
            seen = list(zip(indexes, texts.split("\n"), strict=True)) if indexes else []
            return cls(**{**fields, "holders": holders, "seen": seen})
        except (ValueError, TypeError, KeyError, AttributeError, OSError):
            return None
