"""Record documents: turns, index membership, nickname claims, calibrations, how models treat signed
reasoning, what was asked of a model and read out of a session, what tool calls have done to files,
and what is left to say of what was erased, pruned or imported.

They are documents like any other to the store. With the stored messages they are enough to put
every prompt together again, and to resume a session on any of its branches.
Call records have a module of their own (`calls`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from foredeck.model.documents import Document, Provenance
from foredeck.model.ids import uuid7

SAME_TRANSACTION = "self"
"""A reference's token where the version it names was written in the reference's own transaction."""


def by_foredeck() -> Provenance:
    """Where records come from."""
    return Provenance(origin="foredeck", generator="system")


class RecordDocument(Document):
    """What foredeck itself keeps."""

    provenance: Provenance = Field(default_factory=by_foredeck)


class VersionRef(BaseModel):
    """Exactly this version of exactly this object, and how to verify it.

    Documents keep it under `version_ref` or `file_version_ref`, call records under `system`.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    object: str
    version: int
    """Ordinal of the version within the session, from 1: what `@12 v3` means."""
    token: str
    content_hash: str
    text_hash: str | None
    metadata_view_hash: str


class TurnDocument(RecordDocument):
    """One assistant message with the user message that began it, if any, and its calls.

    `user`, `assistant` and `others` are hashes of stored messages (see `messages.py`): text is
    stored once, however many turns, branches and calls hold it.
    """

    type: str = "turn"
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


class MemberDocument(RecordDocument):
    """An object in a session's index. `ordinal` is its handle, the same on every branch.

    Each version of the document is one version of the object that the session has seen, so the
    document's history is the list behind `@12 v1`, `@12 v2` and so on.
    """

    type: str = "member"
    session: str
    ordinal: int
    object: str
    object_type: str
    label: str = ""
    """What else the object can be called by: the path of a file, a tool call's provider id."""
    version_ref: VersionRef


class NicknameDocument(RecordDocument):
    """The claim of a nickname: made by compare-and-put, so a name means one object at a time."""

    type: str = "nickname"
    object: str | None


class ForgottenDocument(RecordDocument):
    """The tombstone of a session that was erased: that it existed, and how much was erased."""

    type: str = "forgotten"
    session: str
    documents: int
    blobs: int


def forgotten_id(session: str) -> str:
    """Id of the tombstone of a session."""
    return f"forgotten:{session}"


class ImportedDocument(RecordDocument):
    """That a session, or a part of it, came from a file that others may have written.

    Stored before anything of it: what its chat has as the user's is not taken for their
    word, and what its tool calls say of files is not written to the disk unasked.
    """

    type: str = "imported"
    session: str


def imported_id(session: str) -> str:
    """Id of the mark of an imported session."""
    return f"imported:{session}"


class CalibrationDocument(RecordDocument):
    """How many characters make a token of a model, by its provider's own counts."""

    type: str = "calibration"
    model: str
    """`provider/id`."""
    chars_per_token: float
    points: list[list[float]]
    """`[characters, tokens]` of the newest prompts that were counted, without images."""


def calibration_id(model: str) -> str:
    """Id of the calibration of a model (`provider/id`)."""
    return f"calibration:{model}"


class ReasoningDocument(RecordDocument):
    """That a model has refused a prompt because of what stood before its signed reasoning."""

    type: str = "reasoning"
    model: str
    """`provider/id`."""
    binds: bool
    """False once that was taken back."""


def reasoning_id(model: str) -> str:
    """Id of what is known of a model's signed reasoning (`provider/id`)."""
    return f"reasoning:{model}"


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


ARCHIVED = "(archived)"
"""The placeholder for text that was pruned."""


class ArchivedDocument(RecordDocument):
    """The messages of a session that have lost their text; each pruning adds a version.

    `messages`: by the address of a message, what is left of it, packed as `{"$json": hash}`.
    `texts`: hashes of longer texts that went with them. Of these nothing is left.
    """

    type: str = "archived"
    session: str
    messages: dict[str, dict[str, str]] = Field(default_factory=dict)
    texts: list[str] = Field(default_factory=list)


def archived_id(session: str) -> str:
    """Id of what is left of a session's pruned messages."""
    return f"archived:{session}"


class ExtractionDocument(RecordDocument):
    """One answer of a model to the question what is worth remembering of some turns.

    Stored in one transaction with the entries that came of it. Holds no words of
    a chat, so that there is nothing in it to erase.
    """

    type: str = "extraction"
    session: str
    first: int
    """Numbers of the turns that were read: from this one"""
    last: int
    """to this one."""
    entries_kept: list[str] = Field(default_factory=list)
    """Ids of the entries that were kept at once;"""
    entries_proposed: list[str] = Field(default_factory=list)
    """of those that wait for the user's word."""
    refused: dict[str, int] = Field(default_factory=dict)
    """How many lines were refused, by reason."""
    time_ms: int


def extraction_id(session: str, last: int) -> str:
    """Id of what was read out of a session up to this turn."""
    return f"extraction:{session}:{last}"


AskedOutcome = Literal["open", "answered", "useless", "timed_out", "cancelled", "refused"]
"""`open`: no answer yet, or the engine has died before it; `useless`: the provider failed, or the
answer is none; `refused`: the host has not sent it."""


class AskedDocument(RecordDocument):
    """One question. Stored before it is sent and once more when it has ended, so that one whose
    engine was killed counts too."""

    type: str = "asked"
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


# Versions of file objects hold what an agent could read. The record of a change holds what it takes
# to bring a path back: bytes of any kind, permissions, where a link leads, that there was nothing.


class PathState(BaseModel):
    """What is at a path. `unknown`: not checked; `other`: a folder, a device, what may not be
    read; `large`: a file of more than is kept."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    kind: Literal["file", "link", "missing", "large", "other", "unknown"]
    digest: str | None = None
    """SHA-256 of a file's bytes: the blob that holds them."""
    mode: int | None = None
    """Permissions of a file."""
    target: str | None = None
    """Where a link leads, as it is written."""
    size: int | None = None

    @property
    def can_be_restored(self) -> bool:
        """Whether the path can be brought back to this state."""
        return self.kind in ("file", "link", "missing")


MISSING = PathState(kind="missing")
UNKNOWN = PathState(kind="unknown")


class PathChange(BaseModel):
    """One path in a change. `path`: of this machine, its folder's links resolved."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    path: str
    before: PathState
    after: PathState = UNKNOWN


class FileChangeDocument(RecordDocument):
    """What one tool call, or one rewinding, has done to files.

    Stored before a `write` or `edit` runs, and once more when it has ended.
    """

    type: str = "change"
    session: str
    ordinal: int
    """Counts the session's changes, from 1."""
    tool: str
    """`rewind` for a rewinding."""
    tool_call: str = ""
    """The host's id of the tool call."""
    call: str | None = None
    """Id of the call record whose answer asked for it."""
    paths: list[PathChange] = Field(default_factory=list)
    uncovered: list[str] = Field(default_factory=list)
    """What a command has changed without its state before being known, as far as that is found."""
    files: list[str] | None = None
    """Ids of the file objects that have got versions for what a command did to them."""
    unversioned: dict[str, int] | None = None
    """How many other files a command has changed in the project, by why they got none."""
    blind: bool = False
    """Whether a command ran in a folder too large to be searched, of which git did not say
    what had changed."""


def change_id(session: str, ordinal: int) -> str:
    """Id of a session's n-th change."""
    return f"change:{session}:{ordinal}"


def changes_of(fields: Any) -> list[PathChange]:
    """The paths of a stored change."""
    return [PathChange.model_validate(path) for path in fields.get("paths") or ()]
