"""From the name of a thing that is not on a disk to its object."""

from __future__ import annotations

from foredeck.errors import ToolError
from foredeck.model.documents import Document, Fields
from foredeck.model.sources import history_source
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.git import repository
from foredeck.sources.pointers import git_name, pointer
from foredeck.sources.projects import project_of

SHORT_ID = 12
"""Digits of a commit's id in a label."""


def pointed(name: str, filesystems: FilesystemMap, cwd: str | None, max_bytes: int) -> Document:
    """The sealed object of what a name points to: a file as of a commit of the repository that
    `cwd` is in, or what can be said of a URL, an object in S3 or a row without fetching it.

    Raises `ToolError` with what to do.
    """
    asked = git_name(name)
    if asked is None:
        return pointer(name)
    folder = cwd or filesystems.cwd
    local = filesystems.locate(folder).local
    if local is None:
        raise ToolError(f"{folder} cannot be reached from here: read the file with git show.")
    project = project_of(folder, filesystems)
    with repository(local, project.id) as opened:
        return opened.document(asked, max_bytes)


def pointer_label(fields: Fields) -> str:
    """What to call the object of a pointer, given its fields: the name that leads to it, with the
    commit that was meant; empty for any other object."""
    source = fields.get("source") or {}
    if source.get("type") == "git" and "ref" in source:
        return ":".join(filter(None, ("git", source["ref"][:SHORT_ID], source.get("path"))))
    if (told := history_source(fields)) is not None:
        return f"{told.path} in session {told.session}"
    return str(fields.get("locator") or "")
