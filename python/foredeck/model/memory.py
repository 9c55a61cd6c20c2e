"""Memory entries of a session, its data or its user; and pages of working memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from foredeck.model.documents import Document, Provenance
from foredeck.model.records import RecordDocument

Place = Literal["session", "global", "findings"]
"""A session's memory, the user's, or a session's findings."""

Category = Literal["fact", "context", "preference", "decision", "finding"]

CATEGORIES: dict[Place, tuple[Category, ...]] = {
    "session": ("fact", "context"),
    "global": ("preference", "decision"),
    "findings": ("finding",),
}
"""Categories by place."""

MemoryState = Literal["proposed", "kept", "refused", "superseded", "evicted", "expired", "deleted"]
"""Only what is kept is ever shown to a model.

proposed    waits for the user's word
refused     the user does not want it
superseded  another entry says it better
evicted     left when its place was full
expired     it was not used, or the proposal not answered, for long
deleted     the user has taken it out
"""

LearnedFrom = Literal[
    "user_turn", "assistant_turn", "manual", "pinned", "model", "analysis", "import"
]
"""The source of an entry: words, an act of the user, or a tool's result."""

FACT_CHARS = 400
"""Longest text of an entry."""

MOST_PROPOSALS = 50
"""Further ones displace the oldest."""


class Ground(BaseModel):
    """What of the code an entry rests on.

    Of a file: its absolute path, and the SHA-256 of its bytes. Of a commit: the repository's
    folder, and the full id.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    kind: Literal["file", "commit"] = "file"
    path: str
    version: str


class MemoryDocument(RecordDocument):
    """An entry; times in milliseconds since 1970.

    Trust is not stored: it follows from `vouched` and the asking user's key (`memory/trust.py`).
    """

    metadata_fields: ClassVar[tuple[str, ...]] = ("fact", "category", "state")

    type: str = "memory"
    place: Place
    category: Category
    fact: str
    """One line, in English."""
    native: str = ""
    """The same in the user's language, if different."""
    state: MemoryState = "kept"
    act: str = "added"
    """What made this version: added, proposed, accepted, edited, pinned, demoted, ..."""
    owner: str
    """Id of its user."""
    session: str | None = None
    turn: str | None = None
    learned_from: LearnedFrom = "manual"
    tool_originated: bool = False
    """Whether a tool's output says it."""
    vouched: str | None = None
    """Proof that the user said this, by a recorded act (`memory/trust.py`)."""
    scope: Literal["everywhere", "project"] = "everywhere"
    project: str | None = None
    """Where it was learned; with scope `project`, where it holds."""
    promoted_from: Literal["session", "findings"] | None = None
    """Where it was before it was pinned."""
    tags: list[str] = Field(default_factory=list)
    grounds: list[Ground] = Field(default_factory=list)
    superseded_by: str | None = None
    object: str | None = None
    """Its list (`list_of_user`) if it outlives its session or awaits the user."""
    learned_ms: int
    """When its source was said."""
    created_ms: int
    updated_ms: int
    used_ms: int
    """When it was last of use."""

    def seal(self) -> Self:
        """Also derives the list."""
        waits = self.state == "proposed"
        is_listed = waits or (self.state == "kept" and self.place == "global")
        self.object = list_of_user(self.owner) if is_listed else None
        return super().seal()

    def statement(self) -> list[Any]:
        """What the user's word covers: any change voids it."""
        return [
            *("memory", self.id, self.place, self.category, self.fact, self.native, self.scope),
            *(self.project, self.session, self.tool_originated),
        ]


def list_of_user(user: str) -> str:
    """The index key of a user's entries and proposals."""
    return f"memory-of:{user}"


def is_kept_with(fields: Mapping[str, Any]) -> bool:
    """Whether an entry belongs to its session; global ones do not."""
    return fields.get("place") != "global"


MemoryScope = Literal["resource", "thread"]
"""Owner of a page: the project, or one session."""


def by_an_agent(session: str) -> Provenance:
    """Provenance of a model's version."""
    return Provenance(origin=session, generator="agent")


class WorkingDocument(Document):
    """A page of working memory."""

    metadata_fields = ("scope", "form")

    type: str = "working"
    provenance: Provenance = Field(default_factory=lambda: by_an_agent(""))
    scope: MemoryScope = "resource"
    project: str | None = None
    """Id of the owning project."""
    session: str | None = None
    """The owning session."""
    form: Literal["markdown"] = "markdown"


def working_id(scope: MemoryScope, owner: str) -> str:
    """Id by project or session."""
    return f"working:{scope}:{owner}"
