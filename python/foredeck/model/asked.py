"""What foredeck itself has asked of a model, beside the agent's work, and what that took."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from foredeck.model.documents import Document, Provenance
from foredeck.model.ids import uuid7
from foredeck.model.records import by_foredeck

AskedOutcome = Literal["open", "answered", "useless", "timed_out", "cancelled", "refused"]
"""`open`: no answer yet, or the engine has died before it; `useless`: the provider failed, or the
answer is none; `refused`: the host has not sent it."""


class AskedDocument(Document):
    """One question. Stored before it is sent and once more when it has ended, so that one whose
    engine was killed counts too."""

    type: str = "asked"
    provenance: Provenance = Field(default_factory=by_foredeck)
    session: str
    purpose: str
    """The work that it belongs to: `observe`, `reflect`, `extract`."""
    call: int = 0
    """Ordinal of the session's newest call when it was asked."""
    time_ms: int
    ended_ms: int | None = None
    model: str = ""
    """`provider/id`."""
    warm: bool = False
    """It was added to the agent's last prompt, to be read from the provider's cache."""
    outcome: AskedOutcome = "open"
    reason: str = ""
    """Of an outcome that is no answer."""
    price: float = 0.0
    """What it was expected to cost, in dollars."""
    cost: float | None = None
    """What it has cost; None where the host did not say."""
    read: int = 0
    """Tokens read from the provider's cache, `written` to it, `fresh` for neither, and `output`."""
    written: int = 0
    fresh: int = 0
    output: int = 0


def asked_id(session: str) -> str:
    """Id of a new question of a session's."""
    return f"asked:{session}:{uuid7()}"
