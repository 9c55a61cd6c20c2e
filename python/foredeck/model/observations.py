"""What replaces older chat: observations, reflections on them, and compactions."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from foredeck.model.documents import Document
from foredeck.model.identity import hash_value
from foredeck.model.memory import MemoryScope

Mode = Literal[
    "default", "explore", "bug_fixing", "refactoring", "testing", "debugging", "research"
]
"""The kind of work: what an observer looks for."""

ModeBy = Literal["user", "guess"]
"""Who chose the mode: the user, or a guess from the tools that ran."""

Priority = Literal["high", "medium", "low"]
Work = Literal["observe", "reflect"]
Level = Literal["reflection", "summary"]
"""What a reflection condenses: observations alone, or reflections too."""

ObservedBy = Literal["model", "foredeck"]
"""Author: a model, or foredeck without one."""


class Remark(BaseModel):
    """One observed thing, in a line or a few.

    `time_ms`: when it was said or done. `unfounded`: names that none of its messages contains.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    time_ms: int
    utc_offset: int | None = None
    priority: Priority
    category: str
    content: str
    files: list[str] = Field(default_factory=list)
    line_numbers: list[int] = Field(default_factory=list)
    mode_specific: dict[str, list[str]] = Field(default_factory=dict)
    unfounded: list[str] = Field(default_factory=list)

    @model_serializer(mode="wrap")
    def _dumped(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = dump(self)
        if self.utc_offset is None:
            del fields["utc_offset"]
        return fields


class MessagePart(BaseModel):
    """A piece of a long message; offsets in characters."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    address: str
    start: int
    end: int
    length: int
    """Of the whole text, where the last piece ends."""


class ObservationDocument(Document):
    """Notes on a span of messages.

    A message observed in parts belongs to the last part's. None as content: deleted by the user.
    """

    metadata_fields: ClassVar[tuple[str, ...]] = (
        *("session", "mode", "first_turn", "last_turn", "remark_count"),
    )

    type: str = "observation"
    session: str
    project: str | None = None
    previous: str | None = None
    """Id of the branch's previous observation."""
    covers: list[str]
    part: MessagePart | None = None
    first_turn: int = 0
    last_turn: int = 0
    """User turns along the branch."""
    mode: Mode = "default"
    mode_by: ModeBy = "guess"
    priority: Priority = "medium"
    """The highest of its remarks."""
    category: str = ""
    """The most frequent of its remarks."""
    files: list[str] = Field(default_factory=list)
    line_numbers: list[int] = Field(default_factory=list)
    mode_specific: dict[str, list[str]] = Field(default_factory=dict)
    remarks: list[Remark] = Field(default_factory=list)
    remark_count: int = 0
    current_task: str = ""
    suggestion: str = ""
    """The observer's next step; empty if none."""
    covered_tokens: int = 0
    tokens: int = 0
    """Of the covered messages, and of its text, as counted then."""
    observed_by: ObservedBy = "model"
    model: str = ""
    """`provider/id`."""
    left_out: int = 0
    operation: str = ""
    """Id of the committing operation."""
    is_edited: bool = False
    """Whether the user wrote its text."""
    from_ms: int = 0
    to_ms: int = 0
    """Time of the first and last message."""
    time_ms: int = 0


class ReflectionDocument(Document):
    metadata_fields: ClassVar[tuple[str, ...]] = ("session", "level", "generation")

    type: str = "reflection"
    session: str
    project: str | None = None
    level: Level = "reflection"
    generation: int = 1
    previous: str | None = None
    """Id of the branch's previous reflection."""
    replaces: list[str]
    observations: list[str] = Field(default_factory=list)
    """Ids of all underlying observations."""
    remarks: list[Remark] = Field(default_factory=list)
    current_task: str = ""
    suggestion: str = ""
    dropped: list[str] = Field(default_factory=list)
    """Names in its sources that its text lacks."""
    compression: int = 0
    """Requests to shorten it."""
    input_tokens: int = 0
    tokens: int = 0
    observed_by: ObservedBy = "model"
    model: str = ""
    left_out: int = 0
    operation: str = ""
    is_edited: bool = False
    time_ms: int = 0


NotedDocument = ObservationDocument | ReflectionDocument


class ObservingDocument(Document):
    """The lease to observe or reflect, for a session or project.

    Only its holder may begin and commit.
    """

    type: str = "observing"
    scope: MemoryScope = "thread"
    session: str | None = None
    project: str | None = None
    work: Work | None = None
    """The work in progress, if any."""
    owner: str = ""
    """Process and machine."""
    operation: str = ""
    taken_ms: int = 0
    heartbeat_ms: int = 0
    lease_ms: int = 0
    """Expiry unless renewed."""
    covers: list[str] = Field(default_factory=list)
    """The first and last message being observed, or what is condensed."""
    tokens: int = 0
    done: int = 0
    """Committed operations."""
    newest: str = ""
    """Id of the newest committed document. If missing here, this copy lags behind the shared
    database."""
    last: dict[str, Any] = Field(default_factory=dict)


def observing_id(owner: str) -> str:
    """Id of a session's or project's lease."""
    return f"observing:{owner}"


def observation_id(
    session: str, covers: list[str], part: MessagePart | None, previous: str | None
) -> str:
    """Id of an observation, the same for the same messages."""
    piece = None if part is None else [part.address, part.start, part.end]
    digest = hash_value({"covers": covers, "part": piece, "previous": previous})
    return f"observation:{session}:{digest[:32]}"


def reflection_id(session: str, replaces: list[str]) -> str:
    """Id of a reflection by what it replaces."""
    return f"reflection:{session}:{hash_value({'replaces': replaces})[:32]}"


AskedBy = Literal["user", "threshold", "overflow", "window"]

Writer = Literal["foredeck", "model", "extension"]
"""Author of the summary."""


class CompactionDocument(Document):
    """Turns that left the prompt: `content` is the long summary, `short` the short one.

    Turn numbers continue the branch's previous compaction (`previous`).
    """

    metadata_fields = ("session", "first_turn", "last_turn", "short")

    type: str = "compaction"
    session: str
    previous: str | None = None
    """Id of the branch's previous compaction."""
    first_turn: int
    last_turn: int
    """A split turn ends one compaction and begins the next."""
    short: str = ""
    turns: list[Any] = Field(default_factory=list)
    """`[number, text]` per turn, packed as stored messages."""
    entries: list[str | None] = Field(default_factory=list)
    messages: int = 0
    """Number of covered messages."""
    asked_by: AskedBy
    instructions: str = ""
    written_by: Writer = "foredeck"
    call: int = 0
    """Ordinal of the session's newest call then."""
    time_ms: int = 0
    refused: dict[str, Any] = Field(default_factory=dict)
    pinned: list[int] = Field(default_factory=list)
    """Handles of pinned objects that left the view."""
    lost: str | None = None
    """What the summary lacks, a line each; None for a message without its middle."""
    taken_back: bool | None = None


def compaction_id(session: str, covers: list[str], previous: str | None, by: str) -> str:
    """Id of a compaction; `by` is author and size of the summary."""
    digest = hash_value({"covers": covers, "previous": previous, "by": by})
    return f"compaction:{session}:{digest[:32]}"
