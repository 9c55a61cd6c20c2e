"""Last uses of a message list as they are kept between processes.

They follow from the messages, so whoever has lost them, or finds that they are of other messages,
reads the messages again. Reading a thousand calls takes five times as long as taking these over.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from foredeck.context.messages.conversation import Conversation
from foredeck.context.policies.policy import UseRule

FORMAT = 1
"""To be raised with every change of what counts as a use, a piece or an identifier."""


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
    names: list[str]
    """The identifiers by which each piece can be told, with spaces between them."""
    seen: list[tuple[int, str]]
    """Messages with all the identifiers in them, as far as they were looked for."""

    def fits(self, conversation: Conversation, cwd: str, rule: UseRule) -> bool:
        """Whether a list begins with these very messages, and would be read in the same way."""
        if (self.cwd, self.rule) != (cwd, rule) or not 0 < self.count <= len(conversation):
            return False
        return conversation.tips[self.count - 1] == self.tip and len(self.names) == len(self.last)

    def to_bytes(self) -> bytes:
        """As a file holds it."""
        return json.dumps({"format": FORMAT, **asdict(self)}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> KeptUses | None:
        """The inverse of `to_bytes`; None for what another version has written."""
        try:
            fields = json.loads(data)
            if fields.pop("format") != FORMAT:
                return None
            fields["rule"] = UseRule(**fields["rule"])
            fields["seen"] = [(index, names) for index, names in fields["seen"]]
            return cls(**fields)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
