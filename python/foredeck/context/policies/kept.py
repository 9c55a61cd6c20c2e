"""Last uses of a message list as they are kept between processes.

They follow from the messages, so whoever has lost them, or finds that they are of other messages,
reads the messages again. Reading a thousand calls takes five times as long as taking these over.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

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
class KeptUses:
    """What was found of the first `count` messages of a list."""

    tip: str
    """The rolling hash over these messages."""
    count: int
    cwd: str
    rule: UseRule
    last: list[int]
    """At which model call each piece of content was last used, in the order of the pieces."""
    holders: dict[str, tuple[int, ...]]
    """By identifier, the pieces that are recognised by it, by their numbers."""
    seen: list[tuple[int, str]]
    """Messages with all the identifiers in them, as far as they were looked for."""

    def fits(self, conversation: Conversation, cwd: str, rule: UseRule) -> bool:
        """Whether a list begins with these very messages, and would be read in the same way."""
        if (self.cwd, self.rule) != (cwd, rule) or not 0 < self.count <= len(conversation):
            return False
        return conversation.tips[self.count - 1] == self.tip

    def is_of(self, pieces: int) -> bool:
        """Whether it says something of so many pieces, and of no others."""
        # The numbers of each ascend: of hundreds of thousands only the last ones are compared.
        last = max((numbers[-1] for numbers in self.holders.values()), default=-1)
        return len(self.last) == pieces and last < pieces

    def to_bytes(self) -> bytes:
        """As a file holds it."""
        # Few long texts and lists: read back in a third of the time that as many short ones take.
        by_count: dict[int, tuple[list[str], list[int]]] = {}
        for name, numbers in self.holders.items():
            names, flat = by_count.setdefault(len(numbers), ([], []))
            names.append(name)
            flat.extend(numbers)
        fields = {
            **{name: getattr(self, name) for name in ("tip", "count", "cwd", "last")},
            "rule": asdict(self.rule),
            "holders": [[n, " ".join(names), flat] for n, (names, flat) in by_count.items()],
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
            holders: dict[str, tuple[int, ...]] = {}
            for count, names, flat in fields["holders"]:
                held = zip(*[iter(flat)] * count, strict=True)
                holders.update(zip(names.split(" "), held, strict=True))
            indexes, texts = fields["seen"]
            seen = list(zip(indexes, texts.split("\n"), strict=True)) if indexes else []
            return cls(**{**fields, "holders": holders, "seen": seen})
        except (ValueError, TypeError, KeyError, AttributeError, OSError):
            return None
