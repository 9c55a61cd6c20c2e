"""Memory: entries, kept of a session, of its data or of its user; and pages of working memory,
which a project or a session keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from foredeck.model.documents import Document, Provenance
from foredeck.model.records import RecordDocument

Place = Literal["session", "global", "findings"]
"""Where an entry is kept: in one session's memory, in its user's, or with a session's findings."""

Category = Literal["fact", "context", "preference", "decision", "finding"]

CATEGORIES: dict[Place, tuple[Category, ...]] = {
    "session": ("fact", "context"),
    "global": ("preference", "decision"),
    "findings": ("finding",),
}
"""What an entry of each place may be."""

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
    "user_turn", "assistant_turn", "manual", "pinned", "model", "analysis", "observation", "import"
]
"""What an entry was made from: what the user, or the model, said; what the user typed for it; an
entry that the user pinned; a tool with which the model asked for it; the result of a data tool; an
observation; a bundle that was imported."""

FACT_CHARS = 400
"""Longest text of an entry."""


class Ground(BaseModel):
    """What of the code an entry rests on, as it was then.

    file    `path` is absolute, `version` the SHA-256 of the file's bytes
    commit  `path` is the folder of the repository, `version` the commit's full id
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    kind: Literal["file", "commit"] = "file"
    path: str
    version: str


class MemoryDocument(RecordDocument):
    """One entry. Times are milliseconds since 1970.

    How far it is trusted is not in here: that follows from `vouched`, by the key of the user who
    asks (`memory/trust.py`). `provenance.parent_refs` names what it was made from, and
    `provenance.generator` who made this version.
    """

    metadata_fields: ClassVar[tuple[str, ...]] = ("fact", "category", "state")

    type: str = "memory"
    place: Place
    category: Category
    fact: str
    """One line, in English."""
    native: str = ""
    """The same in the user's language, where that is another one."""
    state: MemoryState = "kept"
    act: str = "added"
    """What made this version: added, proposed, accepted, edited, pinned, demoted, ..."""
    owner: str
    """Id of the user whose it is."""
    session: str | None = None
    """The session that it was learned in, and whose it is unless it is global."""
    turn: str | None = None
    """Id of the turn that it was learned from."""
    learned_from: LearnedFrom = "manual"
    tool_originated: bool = False
    """Whether a tool's output says it."""
    vouched: str | None = None
    """That the user has said just this, by a recorded act (`memory/trust.py`)."""
    scope: Literal["everywhere", "project"] = "everywhere"
    project: str | None = None
    """Id of the project in which it was learned; with the scope `project`, where it holds."""
    promoted_from: Literal["session", "findings"] | None = None
    """Where it was when it was pinned."""
    tags: list[str] = Field(default_factory=list)
    grounds: list[Ground] = Field(default_factory=list)
    superseded_by: str | None = None
    object: str | None = None
    """The list that it is in (`list_of_user`), as long as it outlives its session or waits for the
    user's word: a field that stores have an index of, so that a call need not look at the entries
    of all sessions."""
    learned_ms: int
    """When its source was said."""
    created_ms: int
    updated_ms: int
    used_ms: int
    """When it was last of use."""

    def seal(self) -> Self:
        """See `Document.seal`. The list follows from the rest."""
        waits = self.state == "proposed"
        is_listed = waits or (self.state == "kept" and self.place == "global")
        self.object = list_of_user(self.owner) if is_listed else None
        return super().seal()

    def statement(self) -> list[Any]:
        """What the user's word is given for: no part of it can change and the word still hold."""
        return [
            *("memory", self.id, self.place, self.category, self.fact, self.native, self.scope),
            *(self.project, self.session, self.tool_originated),
        ]


def list_of_user(user: str) -> str:
    """What the entries of a user's are found by, and what waits for their word."""
    return f"memory-of:{user}"


def is_kept_with(fields: Mapping[str, Any]) -> bool:
    """Whether an entry goes where its session goes; what is global stays. `fields`: as in a
    `Head`."""
    return fields.get("place") != "global"


MemoryScope = Literal["resource", "thread"]
"""Whose page it is: the project's, or one session's."""


def by_an_agent(session: str) -> Provenance:
    """Where a version that a model has written comes from."""
    return Provenance(origin=session, generator="agent")


class WorkingDocument(Document):
    """A page of working memory: `content` is Markdown, or JSON where `form` says so."""

    metadata_fields = ("scope", "form")

    type: str = "working"
    provenance: Provenance = Field(default_factory=lambda: by_an_agent(""))
    scope: MemoryScope = "resource"
    project: str | None = None
    """Id of the project whose page it is."""
    session: str | None = None
    """The session whose page it is."""
    form: Literal["markdown", "json"] = "markdown"


def working_id(scope: MemoryScope, owner: str) -> str:
    """Id of a page, by the id of its project or session."""
    return f"working:{scope}:{owner}"
