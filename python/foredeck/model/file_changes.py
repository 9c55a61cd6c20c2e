"""What tool calls have done to files: the state of each path before and after, byte for byte.

Versions of file objects hold what an agent could read. A record here holds what it takes to bring
a path back: bytes of any kind, permissions, where a link leads, and that there was nothing.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from foredeck.model.documents import Document, Provenance
from foredeck.model.records import by_foredeck


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


class FileChangeDocument(Document):
    """What one tool call, or one rewinding, has done to files.

    Stored before a `write` or `edit` runs, and once more when it has ended.
    """

    type: str = "change"
    provenance: Provenance = Field(default_factory=by_foredeck)
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
