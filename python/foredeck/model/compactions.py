"""A stretch of chat that was put away: the object that stands for it, and for the act itself."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from foredeck.model.canonical import hash_value
from foredeck.model.documents import Document

AskedBy = Literal["user", "threshold", "overflow", "window"]
Writer = Literal["foredeck", "model", "extension"]
"""Who wanted it: the user, the host at its threshold, the provider by refusing a prompt as too
long, or the context window, into which the prompt would not have gone otherwise."""


class CompactionDocument(Document):
    """Turns that left the prompt: `content` is the long summary, `short` the short
    one, and each turn can be had word for word.

    Turns are counted over the branch, on from the compaction before (`previous`).
    """

    metadata_fields = ("session", "first_turn", "last_turn", "short")

    type: str = "compaction"
    session: str
    previous: str | None = None
    """Id of the compaction before this one on its branch."""
    first_turn: int
    last_turn: int
    """The range; a turn that was cut in the middle is the last of one and the first of the next."""
    short: str = ""
    turns: list[Any] = Field(default_factory=list)
    """`[number, text]` for each turn, long texts packed as in stored messages."""
    entries: list[str | None] = Field(default_factory=list)
    """The host's entry ids of the first and the last message."""
    messages: int = 0
    """How many messages it covers."""
    asked_by: AskedBy
    instructions: str = ""
    """What the user wanted the summary to stress."""
    written_by: Writer = "foredeck"
    call: int = 0
    """The session's newest call when it was made."""
    time_ms: int = 0
    refused: dict[str, Any] = Field(default_factory=dict)
    """Of a prompt that was refused as too long: its `model`, and its `chars`."""
    pinned: list[int] = Field(default_factory=list)
    """Handles of the pinned objects that left the view with it."""


def compaction_id(session: str, covers: list[str], previous: str | None, by: str) -> str:
    """Id of the compaction of messages with these addresses: equal content, equal summary.

    `by`: who writes the summary, and within which size.
    """
    digest = hash_value({"covers": covers, "previous": previous, "by": by})
    return f"compaction:{session}:{digest[:32]}"
