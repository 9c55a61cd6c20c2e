"""Compactions: turns that left a prompt, and the summary in place of them. Objects, like
observations: what they were made from stays in the store word for word.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from foredeck.model.canonical import hash_value
from foredeck.model.documents import Document

AskedBy = Literal["user", "threshold", "overflow", "window"]
"""Why chat is compacted: the user asked for it, the host has reached its threshold, the provider
has refused a prompt as too long, or the prompt would not have fitted the window."""

Writer = Literal["foredeck", "model", "extension"]
"""Who wrote the summary."""


class CompactionDocument(Document):
    """Turns that left the prompt: `content` is the long summary, `short` the short one, and
    `turns` holds every turn word for word.

    Turns are numbered along the branch, continuing from the compaction before (`previous`).
    """

    metadata_fields = ("session", "first_turn", "last_turn", "short")

    type: str = "compaction"
    session: str
    previous: str | None = None
    """Id of the compaction before this one on its branch."""
    first_turn: int
    last_turn: int
    """The range. A turn that is cut in two is the last of one compaction and first of the next."""
    short: str = ""
    turns: list[Any] = Field(default_factory=list)
    """`[number, text]` for each turn, long texts packed as in stored messages."""
    entries: list[str | None] = Field(default_factory=list)
    """The host's entry ids of the first and the last message."""
    messages: int = 0
    """How many messages it covers."""
    asked_by: AskedBy
    instructions: str = ""
    """What the user asked the summary to stress."""
    written_by: Writer = "foredeck"
    call: int = 0
    """Ordinal of the session's newest call at the time."""
    time_ms: int = 0
    refused: dict[str, Any] = Field(default_factory=dict)
    """The prompt that the provider refused as too long: its `model` and its length in `chars`."""
    pinned: list[int] = Field(default_factory=list)
    """Handles of the pinned objects whose content went out of view with these turns."""
    lost: str | None = None
    """What the turns hold and the summary does not name, one in a line with where it is. None for
    a message that stays in the chat without its middle."""
    taken_back: bool | None = None
    """Whether the user has had the turns brought back into the chat, so that the summary no
    longer replaces them."""


def compaction_id(session: str, covers: list[str], previous: str | None, by: str) -> str:
    """Id of the compaction of messages with these addresses: equal content, equal summary.

    `by`: who writes the summary, and within which size.
    """
    digest = hash_value({"covers": covers, "previous": previous, "by": by})
    return f"compaction:{session}:{digest[:32]}"
