"""Pages of working memory, which a project or a session keeps."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from foredeck.model.documents import Document, Provenance

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
