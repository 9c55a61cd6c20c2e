"""What replaces older chat in a prompt: observations, reflections and compactions.

An observation covers a span of messages, a reflection the observations before it, and a compaction
the turns that left the prompt. All are objects: what they were made from stays in the store word
for word, and they name it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from foredeck.model.canonical import hash_value
from foredeck.model.documents import Document
from foredeck.model.memory import MemoryScope

Mode = Literal[
    "default", "explore", "bug_fixing", "refactoring", "testing", "debugging", "research"
]
"""What kind of work is observed: it decides what an observer looks for, not how it is kept."""

ModeBy = Literal["user", "start", "guess"]
"""Where the mode is from: the user, whoever started a subagent, or what its tools did."""

Priority = Literal["high", "medium", "low"]
Work = Literal["observe", "reflect"]
Level = Literal["reflection", "summary"]
"""Of a reflection: it condenses observations alone, or earlier reflections, too."""

ObservedBy = Literal["model", "foredeck"]
"""Who wrote it: a model that was asked, or foredeck itself without one."""


class Remark(BaseModel):
    """One thing that was observed, in a line or a few.

    `time_ms`: when it was said or done; `utc_offset`: minutes by which the zone in which its time
    was written is ahead of UTC, None where that is not known. `files` and `line_numbers`: those
    that the text names. `mode_specific`: what the mode looks for, by name. `unfounded`: paths and
    identifiers of the text that occur in none of the messages which it was made from.
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
        """Without an unknown zone: older remarks were hashed before there was that field."""
        fields: dict[str, Any] = dump(self)
        if self.utc_offset is None:
            del fields["utc_offset"]
        return fields


class MessagePart(BaseModel):
    """A piece of one message that is too long to be observed at once; offsets in characters."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    address: str
    start: int
    end: int
    length: int
    """Of the whole text: the piece that ends here is the last."""


class ObservationDocument(Document):
    """What was noted of a span of messages: `content` is the text of its remarks.

    `covers` are the addresses of the messages that it replaces, in their order. A message that
    was observed in parts is in that of the last part; those before cover what was done up to
    it. `content` is None where the user has deleted it: what it covers is not observed once more.
    """

    metadata_fields: ClassVar[tuple[str, ...]] = (
        *("session", "mode", "first_turn", "last_turn", "remark_count"),
    )

    type: str = "observation"
    session: str
    project: str | None = None
    previous: str | None = None
    """Id of the observation before it on its branch."""
    covers: list[str]
    part: MessagePart | None = None
    first_turn: int = 0
    last_turn: int = 0
    """User turns, numbered along the branch."""
    mode: Mode = "default"
    mode_by: ModeBy = "guess"
    priority: Priority = "medium"
    """The highest of its remarks."""
    category: str = ""
    """The one that most of its remarks have."""
    files: list[str] = Field(default_factory=list)
    line_numbers: list[int] = Field(default_factory=list)
    mode_specific: dict[str, list[str]] = Field(default_factory=dict)
    remarks: list[Remark] = Field(default_factory=list)
    remark_count: int = 0
    current_task: str = ""
    suggestion: str = ""
    """What its observer would do next; empty where it did not say."""
    covered_tokens: int = 0
    tokens: int = 0
    """Of the messages that it covers, and of its own text, as counted when it was written."""
    observed_by: ObservedBy = "model"
    model: str = ""
    """`provider/id`."""
    left_out: int = 0
    """Lines of the model's answer that were no notes."""
    operation: str = ""
    """Id of the operation that committed it."""
    is_edited: bool = False
    """Its text is the user's."""
    from_ms: int = 0
    to_ms: int = 0
    """When the first and the last of its messages were written."""
    time_ms: int = 0


class ReflectionDocument(Document):
    """What replaces observations, or earlier reflections: `content` is its text.

    `replaces`: ids of these, in their order. Reflections are numbered by `generation`
    along their branch; what an older one said stays in the store.
    """

    metadata_fields: ClassVar[tuple[str, ...]] = ("session", "level", "generation")

    type: str = "reflection"
    session: str
    project: str | None = None
    level: Level = "reflection"
    generation: int = 1
    previous: str | None = None
    """Id of the reflection before it on its branch; one that it replaces is among `replaces`."""
    replaces: list[str]
    observations: list[str] = Field(default_factory=list)
    """Ids of all observations that it goes back to, those of replaced reflections included."""
    remarks: list[Remark] = Field(default_factory=list)
    current_task: str = ""
    suggestion: str = ""
    dropped: list[str] = Field(default_factory=list)
    """Paths and identifiers that what it replaces names and its text does not."""
    compression: int = 0
    """How often it was asked for again because it was too long."""
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
    """Who observes or reflects at the moment, for one session or project.

    A lease: while it holds, no other may begin, and only the operation that took it may commit.
    Every commit makes a version, so that whoever has read the observations before finds out.
    """

    type: str = "observing"
    scope: MemoryScope = "thread"
    session: str | None = None
    project: str | None = None
    work: Work | None = None
    """What is being done; None: nothing."""
    owner: str = ""
    """The process, with its machine."""
    operation: str = ""
    taken_ms: int = 0
    heartbeat_ms: int = 0
    lease_ms: int = 0
    """Until when it holds unless it is renewed."""
    covers: list[str] = Field(default_factory=list)
    """The first and the last message that are being observed, or what is being condensed."""
    tokens: int = 0
    done: int = 0
    """How many operations have been committed."""
    newest: str = ""
    """Id of the document that was committed last. Where it is not here, others have written more
    than has come from the shared database."""
    last: dict[str, Any] = Field(default_factory=dict)
    """How the newest operation ended: `operation`, `work`, `outcome`, `reason`, `time_ms`."""


def observing_id(owner: str) -> str:
    """Id of the lease, by the id of the session or project."""
    return f"observing:{owner}"


def observation_id(
    session: str, covers: list[str], part: MessagePart | None, previous: str | None
) -> str:
    """Id of the observation of these messages: whoever observes them again finds it there."""
    piece = None if part is None else [part.address, part.start, part.end]
    digest = hash_value({"covers": covers, "part": piece, "previous": previous})
    return f"observation:{session}:{digest[:32]}"


def reflection_id(session: str, replaces: list[str]) -> str:
    """Id of the reflection that replaces these."""
    return f"reflection:{session}:{hash_value({'replaces': replaces})[:32]}"


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
