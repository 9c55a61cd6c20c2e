"""Records: versioned and hashed like objects, but not for the model to refer to.

With the stored messages they suffice to rebuild every prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from foredeck.model.documents import Document, Provenance
from foredeck.model.identity import uuid7

SAME_TRANSACTION = "self"
"""Token of a reference to a version of its own transaction."""


def by_foredeck() -> Provenance:
    return Provenance(origin="foredeck", generator="system")


class RecordDocument(Document):
    """What foredeck itself keeps."""

    provenance: Provenance = Field(default_factory=by_foredeck)


class VersionRef(BaseModel):
    """A version of an object, verifiable."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    object: str
    version: int
    token: str
    content_hash: str
    text_hash: str | None
    metadata_view_hash: str


class TurnDocument(RecordDocument):
    """An assistant message with its calls, and the user message before it.

    `user`, `assistant` and `others` are hashes of stored messages.
    """

    type: str = "turn"
    session: str
    user: str | None = None
    assistant: str | None = None
    others: list[str] = Field(default_factory=list)
    toolcall_ids: list[str] = Field(default_factory=list)
    assistant_meta: dict[str, Any] = Field(default_factory=dict)
    user_turn: int = 0
    """Ordinal of its user turn, from 1."""
    extras: dict[str, Any] | None = None
    """The host's further fields of these messages, packed, by address."""
    answers: str | None = None
    """Id of the call record of an answer that ended a run."""
    task: str | None = None
    """Id of the task worked on."""


class MemberDocument(RecordDocument):
    """An object of a session's index; its versions are those that the session has seen."""

    type: str = "member"
    session: str
    ordinal: int
    object: str
    object_type: str
    label: str = ""
    """Another name of the object: a file's path, or a call's provider id."""
    version_ref: VersionRef


class NicknameDocument(RecordDocument):
    """The claim of a nickname, by compare-and-put: a name means one object."""

    type: str = "nickname"
    object: str | None


class ForgottenDocument(RecordDocument):
    """The tombstone of an erased session."""

    type: str = "forgotten"
    session: str
    documents: int
    blobs: int


def forgotten_id(session: str) -> str:
    return f"forgotten:{session}"


class ImportedDocument(RecordDocument):
    """Marks a session that came from a file, so its user text is not trusted."""

    type: str = "imported"
    session: str


def imported_id(session: str) -> str:
    return f"imported:{session}"


class CalibrationDocument(RecordDocument):
    """Characters per token of a model, by its provider's counts."""

    type: str = "calibration"
    model: str
    """`provider/id`."""
    chars_per_token: float
    points: list[list[float]]
    """`[characters, tokens]` of the newest counted prompts, without images."""


def calibration_id(model: str) -> str:
    """Id by model (`provider/id`)."""
    return f"calibration:{model}"


class ReasoningDocument(RecordDocument):
    """A model's refusal or loss because of what precedes its reasoning."""

    type: str = "reasoning"
    model: str
    """`provider/id`."""
    binds: bool
    """False once taken back."""
    every_turn: bool = False
    """Whether it loses reasoning of any turn."""


def reasoning_id(model: str) -> str:
    """Id by model (`provider/id`)."""
    return f"reasoning:{model}"


def member_id(session: str, ordinal: int) -> str:
    return f"member:{session}:{ordinal}"


def call_id(session: str, ordinal: int) -> str:
    return f"call:{session}:{ordinal}"


def turn_id(session: str, number: int) -> str:
    """Counted over all branches."""
    return f"turn:{session}:{number}"


def nickname_id(name: str) -> str:
    return f"nickname:{name}"


def messages_of_turn(fields: Mapping[str, Any]) -> list[str]:
    """Addresses of a turn's messages."""
    addresses = (fields.get("user"), fields.get("assistant"), *(fields.get("others") or ()))
    return [address for address in addresses if address]


ARCHIVED = "(archived)"
"""In place of pruned text."""


class ArchivedDocument(RecordDocument):
    """A session's pruned messages.

    `messages`: what is left, by address. `texts`: hashes of longer texts that are gone.
    """

    type: str = "archived"
    session: str
    messages: dict[str, dict[str, str]] = Field(default_factory=dict)
    texts: list[str] = Field(default_factory=list)


def archived_id(session: str) -> str:
    return f"archived:{session}"


class ExtractionDocument(RecordDocument):
    """A model's answer about what to remember; holds no words of the chat."""

    type: str = "extraction"
    session: str
    first: int
    """Number of the first turn read."""
    last: int
    """Number of the last."""
    entries_kept: list[str] = Field(default_factory=list)
    """Ids of entries kept at once."""
    entries_proposed: list[str] = Field(default_factory=list)
    """Ids of entries that await the user."""
    refused: dict[str, int] = Field(default_factory=dict)
    """Refused lines by reason."""
    time_ms: int


def extraction_id(session: str, last: int) -> str:
    """Id by the last turn read."""
    return f"extraction:{session}:{last}"


AskedOutcome = Literal["open", "answered", "useless", "timed_out", "cancelled", "refused"]
"""`open`: no answer yet; `useless`: failed or empty; `refused`: not sent by the host."""


class AskedDocument(RecordDocument):
    """A question to a model, stored before it is sent and when it ends, so that killed engines'
    questions count."""

    type: str = "asked"
    session: str
    purpose: str
    """Its purpose: `observe`, `reflect`, `extract`."""
    call: int = 0
    """Ordinal of the session's newest call then."""
    time_ms: int
    ended_ms: int | None = None
    model: str = ""
    """`provider/id`."""
    warm: bool = False
    outcome: AskedOutcome = "open"
    reason: str = ""
    """Why there was no answer."""
    price: float = 0.0
    """Expected dollars."""
    cost: float | None = None
    """Actual dollars; None if unknown."""
    read: int = 0
    """Tokens read from the cache, `written` to it, `fresh`, and `output`."""
    written: int = 0
    fresh: int = 0
    output: int = 0


def asked_id(session: str) -> str:
    return f"asked:{session}:{uuid7()}"


# Versions of file objects hold what an agent could read. The record of a change holds what it takes
# to bring a path back: bytes of any kind, permissions, where a link leads, that there was nothing.


class PathState(BaseModel):
    """What is at a path. `other`: a folder, device or unreadable; `large`: too large to keep."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    kind: Literal["file", "link", "missing", "large", "other", "unknown"]
    digest: str | None = None
    """SHA-256 of a file's bytes, its blob."""
    mode: int | None = None
    """Permissions of a file."""
    target: str | None = None
    """A link's target as written."""
    size: int | None = None

    @property
    def can_be_restored(self) -> bool:
        """Whether the path can be restored to this state."""
        return self.kind in ("file", "link", "missing")


MISSING = PathState(kind="missing")
UNKNOWN = PathState(kind="unknown")


class PathChange(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)

    path: str
    before: PathState
    after: PathState = UNKNOWN


class FileChangeDocument(RecordDocument):
    """What a tool call or rewind did to files; stored before a `write` or `edit` runs, and when it
    ends."""

    type: str = "change"
    session: str
    ordinal: int
    """Number of the session's change, from 1."""
    tool: str
    """`rewind` for a rewind."""
    tool_call: str = ""
    """The host's id of the tool call."""
    call: str | None = None
    paths: list[PathChange] = Field(default_factory=list)
    uncovered: list[str] = Field(default_factory=list)
    files: list[str] | None = None
    """Ids of file objects that a command gave versions."""
    unversioned: dict[str, int] | None = None
    """Other changed files in the project, counted by why they got no version."""
    blind: bool = False
    """Whether changes in a command's folder could not be found."""


def change_id(session: str, ordinal: int) -> str:
    return f"change:{session}:{ordinal}"


def changes_of(fields: Any) -> list[PathChange]:
    """The paths of a stored change."""
    return [PathChange.model_validate(path) for path in fields.get("paths") or ()]
