"""Record documents: turns, index membership, nickname claims, calibrations, seals, and what is
left to say of sessions that were erased or imported.

They are documents like any other to the store. With the stored messages they are enough to put
every prompt together again, and to resume a session on any of its branches.
Call records have a module of their own (`calls`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from foredeck.model.documents import Document, Provenance

SAME_TRANSACTION = "self"
"""A reference's token where the version it names was written in the reference's own transaction."""


def by_foredeck() -> Provenance:
    """Where records come from."""
    return Provenance(origin="foredeck", generator="system")


class VersionRef(BaseModel):
    """Exactly this version of exactly this object, and how to verify it.

    Documents and call records keep it under the key `pin` or `file_pin`; it has nothing to do with
    the pinned set.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    object: str
    version: int
    """Ordinal of the version within the session, from 1: what `@12 v3` means."""
    token: str
    content_hash: str
    text_hash: str | None
    metadata_view_hash: str


class TurnDocument(Document):
    """One assistant message with the user message that began it, if any, and its calls.

    `user`, `assistant` and `others` are hashes of stored messages (see `messages.py`): text is
    stored once, however many turns, branches and calls hold it.
    """

    type: str = "turn"
    provenance: Provenance = Field(default_factory=by_foredeck)
    session: str
    user: str | None = None
    assistant: str | None = None
    others: list[str] = Field(default_factory=list)
    toolcall_ids: list[str] = Field(default_factory=list)
    assistant_meta: dict[str, Any] = Field(default_factory=dict)
    user_turn: int = 0
    """Ordinal of the user turn that it belongs to, from 1: what a window counts."""
    extras: dict[str, Any] | None = None
    """What the host gave with messages beside what identifies them, such as the details of
    another extension's message: packed objects by the message's address. Of the messages named
    here, and of tool results since the turn before."""
    answers: str | None = None
    """For an answer that ended a run: id of the call record that it answers. For all others the
    record of the next call says so."""
    task: str | None = None
    """Id of the task that the session worked on then."""


class MemberDocument(Document):
    """An object in a session's index. `ordinal` is its handle, the same on every branch.

    Each version of the document is one version of the object that the session has seen, so the
    document's history is the list behind `@12 v1`, `@12 v2` and so on.
    """

    type: str = "member"
    provenance: Provenance = Field(default_factory=by_foredeck)
    session: str
    ordinal: int
    object: str
    object_type: str
    label: str = ""
    """What else the object can be called by: the path of a file, a tool call's provider id."""
    pin: VersionRef


class NicknameDocument(Document):
    """The claim of a nickname: made by compare-and-put, so a name means one object at a time."""

    type: str = "nickname"
    provenance: Provenance = Field(default_factory=by_foredeck)
    object: str | None


class ForgottenDocument(Document):
    """The tombstone of a session that was erased: that it existed, and how much was erased."""

    type: str = "forgotten"
    provenance: Provenance = Field(default_factory=by_foredeck)
    session: str
    documents: int
    blobs: int


def forgotten_id(session: str) -> str:
    """Id of the tombstone of a session."""
    return f"forgotten:{session}"


class ImportedDocument(Document):
    """That a session, or a part of it, came from a file that anybody may have written.

    Stored before anything of it: what its chat has as the user's is not taken for their
    word, and what its tool calls say of files is not written to the disk unasked.
    """

    type: str = "imported"
    provenance: Provenance = Field(default_factory=by_foredeck)
    session: str


def imported_id(session: str) -> str:
    """Id of the mark of an imported session."""
    return f"imported:{session}"


class CalibrationDocument(Document):
    """How many characters make a token of a model, by its provider's own counts."""

    type: str = "calibration"
    provenance: Provenance = Field(default_factory=by_foredeck)
    model: str
    """`provider/id`."""
    chars_per_token: float
    points: list[list[float]]
    """`[characters, tokens]` of the newest prompts that were counted, without images."""


def calibration_id(model: str) -> str:
    """Id of the calibration of a model (`provider/id`)."""
    return f"calibration:{model}"


class SealsDocument(Document):
    """That a model has refused a prompt because of what stood before its sealed reasoning."""

    type: str = "seals"
    provenance: Provenance = Field(default_factory=by_foredeck)
    model: str
    """`provider/id`."""
    binds: bool
    """False once that was taken back."""


def seals_id(model: str) -> str:
    """Id of what is known of a model's sealed reasoning (`provider/id`)."""
    return f"seals:{model}"


def member_id(session: str, ordinal: int) -> str:
    """Id of the index entry with this handle."""
    return f"member:{session}:{ordinal}"


def call_id(session: str, ordinal: int) -> str:
    """Id of a session's n-th call record."""
    return f"call:{session}:{ordinal}"


def turn_id(session: str, number: int) -> str:
    """Id of a session's n-th turn, those of all its branches counted."""
    return f"turn:{session}:{number}"


def nickname_id(name: str) -> str:
    """Id of the claim of a nickname."""
    return f"nickname:{name}"


def messages_of_turn(fields: Mapping[str, Any]) -> list[str]:
    """The addresses of the messages of a turn, by its fields."""
    named = (fields.get("user"), fields.get("assistant"), *(fields.get("others") or ()))
    return [address for address in named if address]
